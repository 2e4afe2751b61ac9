package fetch

import "testing"

// TestSegmentsKeepAllConnectionsBusy: with one size for all tarballs, some
// would end with most connections idle.
func TestSegmentsKeepAllConnectionsBusy(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct{ size, part int64 }{
		{1, mib}, {16 * mib, 4 * mib}, {100 * mib, 25 * mib}, {128 * mib, 32 * mib}, {128*mib + 1, 17 * mib},
		{160 * mib, 20 * mib}, {1 << 30, 32 * mib}, {1794376103, 31 * mib}, {maxObject, 32 * mib},
	} {
		client, err := New(Options{Connections: 4})
		if err != nil {
			t.Fatal(err)
		}
		if got := client.segmentSize(c.size); got != c.part {
			t.Errorf("%d bytes in segments of %d, want %d", c.size, got, c.part)
		}
	}
	if got := testClient(t, nil).segmentSize(1 << 30); got != testSegment {
		t.Errorf("segments of %d, and not of the size that was asked for", got)
	}
}

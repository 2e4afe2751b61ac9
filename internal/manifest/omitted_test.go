package manifest

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
)

func TestOmittedRoundTrip(t *testing.T) {
	want := []Omission{
		{Path: "a/<b>", Kind: Regular, Rule: "docs", Size: 7},
		{Path: "a/c", Kind: Symlink, Rule: "docs"},
		{Path: "d", Kind: Regular, Rule: "tests", Size: 5, Needs: "bin/x"},
		{Path: "e", Kind: Dir, Rule: "tests"},
	}
	var buf bytes.Buffer
	if err := WriteOmitted(&buf, want); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(buf.String(), "\n"); lines != len(want) || !strings.Contains(buf.String(), `"needed_by":"bin/x"`) {
		t.Errorf("%s", buf.String())
	}
	if _, err := ReadOmitted(bytes.NewReader(buf.Bytes()), 3); err == nil {
		t.Error("more lines than allowed were read")
	}
	got, err := ReadOmitted(&buf, 4)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	sums := map[string]Tally{"docs": {Files: 2, Bytes: 7}, "tests": {Files: 1}}
	if got := CountOmitted(want); !reflect.DeepEqual(got, sums) {
		t.Errorf("%+v", got)
	}
	if CountOmitted(want[2:3]) != nil {
		t.Error("what is there was counted")
	}
}

func FuzzReadOmitted(f *testing.F) {
	f.Add([]byte(`{"path":"a","kind":"file","rule":"docs","size":1,"needed_by":"b"}` + "\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := ReadOmitted(bytes.NewReader(b), 100)
		if err != nil {
			return
		}
		var buf bytes.Buffer
		if err := WriteOmitted(&buf, list); err != nil {
			t.Fatal(err)
		}
		again, err := ReadOmitted(&buf, 100)
		if err != nil || len(again) != len(list) {
			t.Fatalf("%d lines read back as %d: %v", len(list), len(again), err)
		}
	})
}

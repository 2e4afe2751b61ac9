package bump

import "testing"

// TestOneDashboardStays: another run, at the same time, has opened one as well.
func TestOneDashboardStays(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.repo.Dashboard = "ROCm nightlies"
	s.f.before = func(doing string) {
		if doing == "open" {
			s.f.before = nil
			if _, err := s.f.OpenIssue(t.Context(), s.repo.Dashboard, "of the other run", nil); err != nil {
				t.Fatal(err)
			}
			s.f.changes = s.f.changes[:len(s.f.changes)-1]
		}
	}
	s.want(s.run(n30), ActionOpened, "commit", "move", "open", "issue", "edit issue")
	if len(s.f.issues) != 2 || !s.f.issues[0].Open || s.f.issues[1].Open {
		t.Errorf("%+v", s.f.issues)
	}
	s.run(n30)
	s.f.changes = nil
	s.want(s.run(n30), ActionNone)
}

package state

import "testing"

func TestHubTellsOfChanges(t *testing.T) {
	var h Hub
	was := h.State()
	changed := h.Changed()
	h.Update(func(s *State) { s.Host = "a" })
	<-changed
	if h.State().Host != "a" || was.Host != "" || was.Alarms == nil {
		t.Errorf("%+v after %+v", h.State(), was)
	}
	select {
	case <-h.Changed():
		t.Error("changed twice")
	default:
	}
}

package state

import "time"

// Alarms is what somebody should know of s at now, the gravest first.
func Alarms(s *State, now time.Time) []Alarm { return []Alarm{} }

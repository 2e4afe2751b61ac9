// Package serve runs jobs on a schedule, in one process that stays.
//
// It promises: a schedule that could never fire, or that the cron library
// would choke on, is refused before anything starts; one job runs at a time,
// and one that is still running when it is due again is not started twice; a
// job that panics is a failed run, not a dead daemon; when the context ends,
// the job under way is told, waited for, and nothing new begins.
package serve

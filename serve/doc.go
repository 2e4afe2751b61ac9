// Package serve runs jobs on a schedule, in one process that stays.
//
// It promises: a schedule that could never fire, that fires all the time, or that
// the cron library would choke on, is refused before anything starts; a time that a
// change of clocks skips runs once right after it, one that comes twice runs once;
// one job runs at a time, and one that is still running when it is due again is not
// started twice; a job that panics is a failed run, not a dead daemon; times that
// were missed, asleep or off, are made up for once; when the context ends the job
// under way is told, waited for up to a limit, and nothing new begins.
//
// What time it is the wall clock says, and it is asked again at least every minute: a
// timer of this process stands still while the machine sleeps, and knows nothing of
// a clock that is set. Patterns, and the chains around jobs, are robfig/cron's; its
// runner, which sleeps on one such timer, is not used.
package serve

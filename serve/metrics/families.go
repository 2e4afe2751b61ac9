package metrics

// The types of Prometheus that are used here.
const (
	gauge   = "gauge"
	counter = "counter"
)

// family is one metric. Its name ends as Prometheus' rules ask: base units,
// _total of a counter, _info of what is always 1.
type family struct {
	name   string
	kind   string
	help   string
	labels []string
	live   bool // right only while the process runs: not in a textfile
}

// prefix is what every name of ours begins with.
const prefix = "rocm_nightly_"

// The labels of what belongs to a slot.
var ofSlot = []string{"slot"}

// The states of a slot's newest night and of a request, of which one is 1. What is
// none of them counts as the last.
var (
	newestStates = []string{"installed", "newer", "settling", "uploading", "young", "held", "refused", "older", "other"}
	bumpStates   = []string{"open", "pending", "merged", "closed", "limited", "failed", "up-to-date", "pushed", "other"}
)

// families is everything that is told, in the order of docs/metrics.md.
var families = []family{
	{name: "build_info", kind: gauge, help: "The program that made these numbers; always 1.", labels: []string{"version", "commit", "goversion"}},
	{name: "state_timestamp_seconds", kind: gauge, help: "When these numbers were found, in seconds since 1970."},
	{name: "alarms", kind: gauge, help: "Things that somebody should know of, by kind and level.", labels: []string{"kind", "level"}},
	{name: "config_last_reload_successful", kind: gauge, help: "1 if the config that was read last was taken, 0 if the one of before is still in use.", live: true},
	{name: "config_last_reload_success_timestamp_seconds", kind: gauge, help: "When a config was last taken, in seconds since 1970.", live: true},
	{name: "stopping", kind: gauge, help: "1 if the daemon was told to stop and finishes what it does.", live: true},

	{name: "running", kind: gauge, help: "1 while a job runs.", live: true},
	{name: "running_since_timestamp_seconds", kind: gauge, help: "When the job that runs began, in seconds since 1970; absent while none runs.", live: true},
	{name: "running_stage_info", kind: gauge, help: "The stage of the job that runs; always 1, absent while none runs.", labels: []string{"name", "slot", "stage"}, live: true},
	{name: "running_stage_progress_ratio", kind: gauge, help: "How much of the stage is done, from 0 to 1; absent if that is not known.", live: true},

	{name: "job_runs_total", kind: counter, help: "Runs of a job of the schedule since the daemon began, by result.", labels: []string{"name", "result"}, live: true},
	{name: "job_retries_total", kind: counter, help: "Runs of a job since the daemon began that tried again after a failure.", labels: []string{"name"}, live: true},
	{name: "job_consecutive_failures", kind: gauge, help: "Failed runs of a job since the last that did not fail.", labels: []string{"name"}, live: true},
	{name: "job_last_run_timestamp_seconds", kind: gauge, help: "When the last run of a job began, in seconds since 1970.", labels: []string{"name"}, live: true},
	{name: "job_last_run_duration_seconds", kind: gauge, help: "How long the last run of a job took.", labels: []string{"name"}, live: true},
	{name: "job_last_run_exit_code", kind: gauge, help: "The exit code of the last run of a job: 0 done, 1 failed, 2 wrong config, 3 stale index, 4 refused, 5 new bytes.", labels: []string{"name"}, live: true},
	{name: "job_last_success_timestamp_seconds", kind: gauge, help: "When the last run of a job that did not fail ended, in seconds since 1970.", labels: []string{"name"}, live: true},
	{name: "job_next_run_timestamp_seconds", kind: gauge, help: "When a job runs next, in seconds since 1970.", labels: []string{"name"}, live: true},

	{name: "slot_info", kind: gauge, help: "What is active in a slot, and the newest that its index has; always 1.", labels: []string{"slot", "channel", "target", "active", "newest"}},
	{name: "slot_configured", kind: gauge, help: "1 if the config asks for the slot, 0 if it is only on disk.", labels: ofSlot},
	{name: "slot_readable", kind: gauge, help: "0 if something in the slot could not be read.", labels: ofSlot},
	{name: "slot_last_success_timestamp_seconds", kind: gauge, help: "When a run for the slot last did what it should, in seconds since 1970.", labels: ofSlot},
	{name: "slot_last_run_timestamp_seconds", kind: gauge, help: "When the last run on record ended, in seconds since 1970.", labels: ofSlot},
	{name: "slot_last_run_duration_seconds", kind: gauge, help: "How long the last run on record took.", labels: ofSlot},
	{name: "slot_last_run_exit_code", kind: gauge, help: "The exit code of the last run on record: 0 done, 1 failed, 2 wrong config, 3 stale index, 4 refused, 5 new bytes.", labels: ofSlot},
	{name: "slot_consecutive_failures", kind: gauge, help: "Nights on record that failed since the last that did not.", labels: ofSlot},
	{name: "slot_last_run_stage_seconds", kind: gauge, help: "How long each stage of the last run on record took.", labels: []string{"slot", "stage"}},
	{name: "slot_last_tarball_bytes", kind: gauge, help: "Size of the last tarball that was taken.", labels: ofSlot},
	{name: "slot_installed_published_timestamp_seconds", kind: gauge, help: "When AMD published what is active, in seconds since 1970.", labels: ofSlot},
	{name: "slot_installed_timestamp_seconds", kind: gauge, help: "When what is active was installed, in seconds since 1970.", labels: ofSlot},
	{name: "slot_newest_published_timestamp_seconds", kind: gauge, help: "When AMD published the newest night for the slot, in seconds since 1970.", labels: ofSlot},
	{name: "slot_newest_size_bytes", kind: gauge, help: "Size of the tarball of the newest night for the slot.", labels: ofSlot},
	{name: "slot_newest_state", kind: gauge, help: "1 for what the newest night for the slot is, 0 for what it is not.", labels: []string{"slot", "state"}},
	{name: "slot_newer_available", kind: gauge, help: "1 if the index has something newer than what is active.", labels: ofSlot},
	{name: "slot_held", kind: gauge, help: "1 if a hold stops switches.", labels: ofSlot},
	{name: "slot_held_since_timestamp_seconds", kind: gauge, help: "When the hold began, in seconds since 1970; absent if there is none.", labels: ofSlot},
	{name: "slot_expires_timestamp_seconds", kind: gauge, help: "When AMD deletes the tarball of what is active, in seconds since 1970.", labels: ofSlot},
	{name: "slot_audit_findings", kind: gauge, help: "Findings of the audit of what is active, by severity.", labels: []string{"slot", "severity"}},
	{name: "slot_generations", kind: gauge, help: "Generations on disk.", labels: ofSlot},
	{name: "slot_disk_bytes", kind: gauge, help: "Disk that the generations of a class occupy; what two of them share counts in both.", labels: []string{"slot", "class"}},
	{name: "slot_disk_unshared_bytes", kind: gauge, help: "Disk of the generations of a class that no other generation shares.", labels: []string{"slot", "class"}},

	{name: "index_up", kind: gauge, help: "1 if the index answered when it was last asked.", labels: []string{"channel", "index"}},
	{name: "index_checked_timestamp_seconds", kind: gauge, help: "When the index last answered, in seconds since 1970.", labels: []string{"channel", "index"}},
	{name: "index_newest_published_timestamp_seconds", kind: gauge, help: "When the newest release of the index was published, in seconds since 1970: the age of the index.", labels: []string{"channel", "index"}},
	{name: "index_stale", kind: gauge, help: "1 if the newest release of the index is older than the channel's patience.", labels: []string{"channel", "index"}},

	{name: "bump_state", kind: gauge, help: "1 for what the request to a repository is, 0 for what it is not.", labels: []string{"repository", "state"}},
	{name: "bump_failed", kind: gauge, help: "1 if the last try to propose something to the repository failed.", labels: []string{"repository"}},
	{name: "bump_timestamp_seconds", kind: gauge, help: "When the repository was last looked after, in seconds since 1970.", labels: []string{"repository"}},

	{name: "disk_generations_bytes", kind: gauge, help: "Disk of all generations; what they share counts once."},
	{name: "disk_tarballs_bytes", kind: gauge, help: "Disk of the tarballs that are kept."},
	{name: "disk_spool_bytes", kind: gauge, help: "Disk of the downloads that are under way."},
	{name: "disk_free_bytes", kind: gauge, help: "What the file system of the root has left.", live: true},
	{name: "disk_size_bytes", kind: gauge, help: "Size of the file system of the root.", live: true},
	{name: "disk_measured_timestamp_seconds", kind: gauge, help: "When the generations were last measured, in seconds since 1970."},
}

package config

// Bump is one repository whose pins are bumped.
type Bump struct {
	Name    string `yaml:"name" json:"name" jsonschema:"letters, digits, '.', '_' and '-'; it names the branch too"`
	Forge   string `yaml:"forge,omitempty" json:"forge,omitempty" jsonschema:"git (the default), github, gitea (Forgejo too) or gitlab"`
	URL     string `yaml:"url" json:"url" jsonschema:"https://, ssh://, file://, an absolute path, or user@host:path; without a password"`
	API     string `yaml:"api,omitempty" json:"api,omitempty" jsonschema:"the base of the forge's API; empty: as url says"`
	Base    string `yaml:"base,omitempty" json:"base,omitempty" jsonschema:"the branch that the bump goes to; empty: the remote's default"`
	Branch  string `yaml:"branch,omitempty" json:"branch,omitempty" jsonschema:"the branch that is pushed; empty: rocm-nightly/NAME"`
	Channel string `yaml:"channel,omitempty" json:"channel,omitempty" jsonschema:"the channel of the pins; empty: nightly"`
	Files   []Pins `yaml:"files" json:"files" jsonschema:"where the pins stand"`

	TokenEnv        string `yaml:"token_env,omitempty" json:"token_env,omitempty" jsonschema:"the environment variable that holds the token"`
	TokenFile       string `yaml:"token_file,omitempty" json:"token_file,omitempty" jsonschema:"the file that holds the token"`
	TokenCredential string `yaml:"token_credential,omitempty" json:"token_credential,omitempty" jsonschema:"the systemd credential (LoadCredential=) that holds the token"`
	App             *App   `yaml:"app,omitempty" json:"app,omitempty" jsonschema:"the GitHub App that acts, in place of a token: its commits are signed"`

	SSHKeyFile           string `yaml:"ssh_key_file,omitempty" json:"ssh_key_file,omitempty" jsonschema:"the file that holds the ssh key; empty: ssh's own"`
	SSHKeyCredential     string `yaml:"ssh_key_credential,omitempty" json:"ssh_key_credential,omitempty" jsonschema:"the systemd credential that holds the ssh key"`
	KnownHostsFile       string `yaml:"known_hosts_file,omitempty" json:"known_hosts_file,omitempty" jsonschema:"the file that holds the host's ssh keys; empty: ssh's own"`
	KnownHostsCredential string `yaml:"known_hosts_credential,omitempty" json:"known_hosts_credential,omitempty" jsonschema:"the systemd credential that holds the host's ssh keys"`

	Mode    string   `yaml:"mode,omitempty" json:"mode,omitempty" jsonschema:"pull (the default): a branch and, on a forge, a pull request; push: a commit on base itself, for forge git"`
	Fork    string   `yaml:"fork,omitempty" json:"fork,omitempty" jsonschema:"whose fork the branch goes to; empty: one's own, where there is no right to push; never; or an owner"`
	Require string   `yaml:"require,omitempty" json:"require,omitempty" jsonschema:"all (the default): wait until every target has the night; available: bump those that have"`
	Group   string   `yaml:"group,omitempty" json:"group,omitempty" jsonschema:"lockstep (the default): one request, all targets of one version; independent: one request for each target"`
	MaxWait Duration `yaml:"max_wait,omitempty" json:"max_wait,omitempty" jsonschema:"how long lockstep waits for late targets, from the publication of the newest; 0s: for as long as it takes"`
	MinAge  Duration `yaml:"min_age,omitempty" json:"min_age,omitempty" jsonschema:"only releases published at least this long ago"`
	Windows []Window `yaml:"windows,omitempty" json:"windows,omitempty" jsonschema:"when requests may be opened or pushed to; empty: always"`
	Limits  *Limits  `yaml:"limits,omitempty" json:"limits,omitempty" jsonschema:"how much is done to the repository"`

	Author      *Author  `yaml:"author,omitempty" json:"author,omitempty" jsonschema:"who signs the commits"`
	Signoff     bool     `yaml:"signoff,omitempty" json:"signoff,omitempty" jsonschema:"add the author's Signed-off-by"`
	Title       string   `yaml:"title,omitempty" json:"title,omitempty" jsonschema:"template of the request's title: {{.Name}}, {{.Old}}, {{.New}}, {{.Targets}}, {{.Families}}, {{.Date}}, {{.Pins}}, {{.Title}}"`
	Message     string   `yaml:"message,omitempty" json:"message,omitempty" jsonschema:"template of the commit's message: as for title, and {{.Body}}"`
	Labels      []string `yaml:"labels,omitempty" json:"labels,omitempty" jsonschema:"templates, as for title"`
	Reviewers   []string `yaml:"reviewers,omitempty" json:"reviewers,omitempty"`
	Teams       []string `yaml:"teams,omitempty" json:"teams,omitempty" jsonschema:"teams that are asked for a review: ORG/TEAM or TEAM"`
	Assignees   []string `yaml:"assignees,omitempty" json:"assignees,omitempty"`
	Draft       bool     `yaml:"draft,omitempty" json:"draft,omitempty"`
	AutoMerge   string   `yaml:"auto_merge,omitempty" json:"auto_merge,omitempty" jsonschema:"off (the default); platform: by the forge when the required checks have passed; a time such as 24h: by us, when it has been open for so long and they have passed"`
	MergeMethod string   `yaml:"merge_method,omitempty" json:"merge_method,omitempty" jsonschema:"merge, squash or rebase"`
	Reopen      string   `yaml:"reopen,omitempty" json:"reopen,omitempty" jsonschema:"next (the default): what was closed unmerged is not offered again before the next version; always"`
	Dashboard   string   `yaml:"dashboard,omitempty" json:"dashboard,omitempty" jsonschema:"the title of an issue that lists what is open, pending, limited, failed and ignored; empty: none"`

	Check        [][]string `yaml:"check,omitempty" json:"check,omitempty" jsonschema:"commands, each a list of words, that run in the edited checkout, without tokens; what fails keeps the bump back"`
	CheckTimeout Duration   `yaml:"check_timeout,omitempty" json:"check_timeout,omitempty" jsonschema:"of each of them; empty: 10m"`
}

// App is an App of GitHub.
type App struct {
	ID            int64  `yaml:"id" json:"id"`
	Installation  int64  `yaml:"installation,omitempty" json:"installation,omitempty" jsonschema:"0: looked up"`
	KeyEnv        string `yaml:"key_env,omitempty" json:"key_env,omitempty" jsonschema:"the environment variable that holds the private key (PEM)"`
	KeyFile       string `yaml:"key_file,omitempty" json:"key_file,omitempty" jsonschema:"the file that holds it"`
	KeyCredential string `yaml:"key_credential,omitempty" json:"key_credential,omitempty" jsonschema:"the systemd credential that holds it"`
}

// Window is a time in which something may be done.
type Window struct {
	Cron   string   `yaml:"cron" json:"cron" jsonschema:"when it begins: five cron fields, optionally after CRON_TZ=zone"`
	Length Duration `yaml:"length" json:"length" jsonschema:"how long it lasts, at most 7 days"`
}

// Limits bounds what is done to a repository; 0: no bound.
type Limits struct {
	Open           int `yaml:"open,omitempty" json:"open,omitempty" jsonschema:"open requests of ours; 0: no limit"`
	PullsPerHour   int `yaml:"pulls_per_hour,omitempty" json:"pulls_per_hour,omitempty" jsonschema:"requests opened; 0: no limit"`
	CommitsPerHour int `yaml:"commits_per_hour,omitempty" json:"commits_per_hour,omitempty" jsonschema:"commits pushed; 0: no limit"`
}

// Author signs the commits.
type Author struct {
	Name  string `yaml:"name" json:"name"`
	Email string `yaml:"email" json:"email"`
}

// Pins says where in a file the pin of a target stands.
type Pins struct {
	Path    string            `yaml:"path" json:"path"`
	Format  string            `yaml:"format,omitempty" json:"format,omitempty" jsonschema:"how the file is read; empty: by its name. rocm-nightly config check lists them"`
	Pattern string            `yaml:"pattern,omitempty" json:"pattern,omitempty" jsonschema:"for format regex: a regular expression (RE2) whose named groups are the keys of set"`
	Target  string            `yaml:"target" json:"target"`
	Set     map[string]string `yaml:"set" json:"set" jsonschema:"key to template: {{.Version}}, {{.SRI}}, {{.Hex}}, {{.Nix32}}, {{.URL}}, {{.Size}}, {{.Date}}, {{.Family}}, {{.Target}}, {{.Name}}, {{.Channel}}"`
	Fetches string            `yaml:"fetches,omitempty" json:"fetches,omitempty" jsonschema:"template of the address that the repository's code makes of these values, where the file itself does not say it"`
}

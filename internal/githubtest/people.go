package githubtest

import "time"

// Item is what an issue or a pull request is at the moment.
type Item struct {
	Number             int
	Title, Body        string
	State              string // open, closed or merged
	Author             string
	Labels, Assignees  []string
	Reviewers          []string
	Comments           []string
	Pull, Draft        bool
	Base, Head, Commit string // Commit is the head's
	AutoMerge          bool
}

// Items lists issues and pull requests by number.
func (r *Repo) Items() []Item {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	var all []Item
	for _, i := range r.items {
		one := Item{
			Number: i.number, Title: i.title, Body: i.body, State: "open", Author: i.author.login,
			Labels: append([]string(nil), i.labels...), Assignees: append([]string(nil), i.assignees...), Pull: i.pull != nil,
		}
		if !i.open {
			one.State = "closed"
		}
		for _, c := range i.comments {
			one.Comments = append(one.Comments, c.body)
		}
		if p := i.pull; p != nil {
			one.Draft, one.Base, one.Head, one.Commit, one.AutoMerge = p.draft, p.base, p.head, p.sha, p.auto != ""
			one.Reviewers = append([]string(nil), p.reviewers...)
			if p.merged != nil {
				one.State = "merged"
			}
		}
		all = append(all, one)
	}
	return all
}

// item returns the issue or pull request of that number, nil if there is none.
func (r *Repo) item(number int) *item {
	if number < 1 || number > len(r.items) {
		return nil
	}
	return r.items[number-1]
}

// change does f to an item, as a person would.
func (r *Repo) change(number int, f func(*item)) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	i := r.item(number)
	if i == nil {
		r.s.t.Errorf("githubtest: %s has no #%d", r.full(), number)
		return
	}
	f(i)
	i.updated = time.Now()
}

// Close closes an issue or pull request, unmerged.
func (r *Repo) Close(number int) { r.change(number, func(i *item) { i.close() }) }

// Reopen opens it again.
func (r *Repo) Reopen(number int) {
	r.change(number, func(i *item) {
		i.open = true
		if i.pull != nil {
			i.pull.sha = i.pull.from.tip(i.pull.head)
		}
	})
}

// Merge merges a pull request as login, with a merge commit.
func (r *Repo) Merge(number int, login string) {
	r.change(number, func(i *item) {
		if no := r.merge(i, r.s.user(login, "User"), "merge", "Merge"); no != nil {
			r.s.t.Errorf("githubtest: merge #%d: %s", number, no.message)
		}
	})
}

// Comment adds a comment by login.
func (r *Repo) Comment(number int, login, body string) {
	r.change(number, func(i *item) { r.comment(i, r.s.user(login, "User"), body) })
}

func (r *Repo) comment(i *item, who *user, body string) *comment {
	c := &comment{r.s.id(), who, body, time.Now()}
	i.comments = append(i.comments, c)
	return c
}

// Edit sets title and body, as a person who edits them by hand.
func (r *Repo) Edit(number int, title, body string) {
	r.change(number, func(i *item) { i.title, i.body = title, body })
}

// Label adds a label.
func (r *Repo) Label(number int, label string) {
	r.change(number, func(i *item) { r.label(i, label) })
}

// Unlabel takes a label off.
func (r *Repo) Unlabel(number int, label string) {
	r.change(number, func(i *item) { i.unlabel(label) })
}

func (r *Repo) label(i *item, label string) {
	if !has(i.labels, label) {
		i.labels = append(i.labels, label)
	}
	if r.labels[label] == 0 {
		r.labels[label] = r.s.id()
	}
}

func (i *item) unlabel(label string) bool {
	for at, l := range i.labels {
		if l == label {
			i.labels = append(i.labels[:at:at], i.labels[at+1:]...)
			return true
		}
	}
	return false
}

// Review adds a review by login.
func (r *Repo) Review(number int, login string) {
	r.change(number, func(i *item) {
		if i.pull != nil {
			r.s.user(login, "User")
			i.pull.reviewed = append(i.pull.reviewed, login)
		}
	})
}

// OpenPull opens a pull request as login and returns its number.
func (r *Repo) OpenPull(login, title, body, base, head string) int {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	i := r.newItem(r.s.user(login, "User"), title, body)
	i.pull = &pull{base: base, head: head, from: r, sha: r.tip(head)}
	return i.number
}

func (r *Repo) newItem(who *user, title, body string) *item {
	now := time.Now()
	i := &item{id: r.s.id(), number: len(r.items) + 1, title: title, body: body, open: true, author: who, created: now, updated: now}
	r.items = append(r.items, i)
	return i
}

package web

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/plain"
	"github.com/rocm-nightly/rocm-nightly/serve/state"
)

// howToAct is what is said where nothing can be done.
const howToAct = "this page is read only: name a token in the config, such as serve.token_file, to act from here"

// order is one thing that somebody wants done.
type order struct{ action, job, slot, version string }

// refusal is why an order is not carried out: the client's doing.
type refusal struct {
	status int
	text   string
}

// Error implements error.
func (r *refusal) Error() string { return r.text }

// check holds an order against what there is. A roll back that names a generation was
// confirmed by somebody who was told that it goes there.
func (o order) check(st *state.State) error {
	if o.action == "run" {
		if !slices.ContainsFunc(st.Jobs, func(j state.Job) bool { return j.Name == o.job }) {
			return &refusal{http.StatusNotFound, fmt.Sprintf("there is no job %q", plain.Cut(o.job, 100))}
		}
		return nil
	}
	i := slices.IndexFunc(st.Slots, func(s state.Slot) bool { return s.Slot == o.slot })
	if i < 0 {
		return &refusal{http.StatusNotFound, fmt.Sprintf("there is no slot %q", plain.Cut(o.slot, 100))}
	}
	if back := st.Slots[i].Back; o.action == "rollback" && o.version != "" && o.version != back {
		return &refusal{http.StatusConflict, fmt.Sprintf("%s was switched since it was asked: a roll back does not go to %s any more", plain.Cut(o.slot, 100), plain.Cut(o.version, 100))}
	}
	if o.action == "use" && !slices.ContainsFunc(st.Slots[i].Generations, func(g state.Generation) bool {
		return o.version != "" && (g.Name == o.version || g.Version == o.version)
	}) {
		return &refusal{http.StatusNotFound, fmt.Sprintf("%s has no generation %q", plain.Cut(o.slot, 100), plain.Cut(o.version, 100))}
	}
	return nil
}

// do carries an order out and says what was done.
func (s *server) do(ctx context.Context, o order) (string, error) {
	switch o.action {
	case "run":
		return fmt.Sprintf("%s was told to begin", o.job), s.o.Actions.Run(ctx, o.job)
	case "rollback":
		done := o.slot + " was rolled back"
		if o.version != "" {
			done += " to " + o.version
		}
		return done, s.o.Actions.Rollback(ctx, o.slot)
	case "use":
		return fmt.Sprintf("%s uses %s and is held there", o.slot, o.version), s.o.Actions.Use(ctx, o.slot, o.version)
	case "unhold":
		return fmt.Sprintf("%s goes on with the next run", o.slot), s.o.Actions.Unhold(ctx, o.slot)
	}
	return "", &refusal{http.StatusNotFound, "there is no such action"}
}

// act does what somebody who is known wants, if they do not want too much, and
// writes down who it was. A client that goes away leaves it to be finished.
func (s *server) act(w http.ResponseWriter, r *http.Request, o order, by string) (string, error) {
	if err := o.check(s.o.Source.State()); err != nil {
		return "", err
	}
	if d := s.acts.take(r.RemoteAddr); d > 0 {
		w.Header().Set("Retry-After", retryAfter(d))
		return "", &refusal{http.StatusTooManyRequests, "that is more than may be done at once: wait " + seconds(d.Seconds())}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), actionTime)
	defer cancel()
	// A server in a test has no deadlines to set.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(actionTime + writeTime))
	done, err := s.do(ctx, o)
	log := s.o.Log.With("action", o.action, "job", text(o.job), "slot", text(o.slot), "version", text(o.version), "remote", r.RemoteAddr, "by", by)
	if err != nil {
		log.Warn("an action from the page failed", "error", err)
		return "", err
	}
	log.Info("an action from the page was done")
	return done, nil
}

func retryAfter(d time.Duration) string { return strconv.Itoa(int(d/time.Second) + 1) }

// loginPage asks for the token.
func (s *server) loginPage(w http.ResponseWriter, r *http.Request) {
	if !s.canAct() {
		s.fail(w, r, http.StatusForbidden, howToAct)
		return
	}
	s.askToken(w, r, http.StatusOK, "")
}

func (s *server) askToken(w http.ResponseWriter, r *http.Request, status int, why string) {
	f := s.frame(s.o.Source.State(), s.o.Now())
	f.Title, f.Text = "Sign in · rocm-nightly", why
	s.show(w, r, status, "login", f)
}

// login signs in who has the token.
func (s *server) login(w http.ResponseWriter, r *http.Request) {
	if !s.canAct() {
		s.fail(w, r, http.StatusForbidden, howToAct)
		return
	}
	if !s.form(w, r) {
		return
	}
	if d := s.wrong.wait(r.RemoteAddr); d > 0 {
		w.Header().Set("Retry-After", retryAfter(d))
		s.askToken(w, r, http.StatusTooManyRequests, "Too many wrong tokens: wait "+seconds(d.Seconds()))
		return
	}
	if !s.right(r.PostForm.Get("token")) {
		s.wrong.take(r.RemoteAddr)
		s.o.Log.Warn("somebody showed the page a wrong token", "remote", r.RemoteAddr)
		s.askToken(w, r, http.StatusForbidden, "This is not the token")
		return
	}
	if old := s.session(r); old != nil {
		s.sessions.end(old)
	}
	setCookie(w, r, s.sessions.begin(), int(sessionTime/time.Second))
	s.o.Log.Info("somebody has signed in to the page", "remote", r.RemoteAddr)
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// form reads a form of this page, and refuses one that another page sent.
func (s *server) form(w http.ResponseWriter, r *http.Request) bool {
	if err := s.cross.Check(r); err != nil {
		s.fail(w, r, http.StatusForbidden, "another page has sent this: behind a proxy, hand on the Host header as the browser sent it")
		return false
	}
	if err := r.ParseForm(); err != nil {
		status := http.StatusBadRequest
		if big := new(http.MaxBytesError); errors.As(err, &big) {
			status = http.StatusRequestEntityTooLarge
		}
		s.fail(w, r, status, "the form cannot be read: %v", err)
		return false
	}
	return true
}

// signed reads a form of somebody who is signed in, sent from a page that they
// were given.
func (s *server) signed(w http.ResponseWriter, r *http.Request) *session {
	if !s.canAct() {
		s.fail(w, r, http.StatusForbidden, howToAct)
		return nil
	}
	if !s.form(w, r) {
		return nil
	}
	sess := s.session(r)
	if sess == nil {
		http.Redirect(w, r, "/login", http.StatusSeeOther)
		return nil
	}
	if subtle.ConstantTimeCompare([]byte(sess.csrf), []byte(r.PostForm.Get("csrf"))) != 1 {
		s.fail(w, r, http.StatusForbidden, "this form is of another session: load the page again")
		return nil
	}
	return sess
}

// logout signs out.
func (s *server) logout(w http.ResponseWriter, r *http.Request) {
	sess := s.signed(w, r)
	if sess == nil {
		return
	}
	s.sessions.end(sess)
	setCookie(w, r, "", -1)
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// confirm asks once more before something is switched.
func (s *server) confirm(w http.ResponseWriter, r *http.Request) {
	o := order{action: r.PathValue("action"), slot: r.FormValue("slot"), version: r.FormValue("version")}
	if !s.canAct() {
		s.fail(w, r, http.StatusForbidden, howToAct)
		return
	}
	sess := s.session(r)
	if sess == nil {
		http.Redirect(w, r, "/login", http.StatusSeeOther)
		return
	}
	st := s.o.Source.State()
	f := s.frame(st, s.o.Now())
	f.In, f.CSRF, f.Slot, f.Action = true, sess.csrf, o.slot, "/actions/"+o.action
	active, back := ends(st, o.slot)
	switch o.action {
	case "rollback":
		f.Heading, f.Version = "Roll back "+text(o.slot), back
		f.Text = text(back) + " becomes active at once in place of " + text(active) + ". What runs keeps the files that it has open. No run brings " + text(active) + " back by itself: they go on with what is newer."
	case "use":
		f.Heading, f.Version = "Use "+text(o.version)+" and hold", o.version
		f.Text = text(o.slot) + " is switched to " + text(o.version) + " at once, and held: no newer night becomes active until it is let go on."
	default:
		s.notFound(w, r)
		return
	}
	err := o.check(st)
	if err == nil && o.action == "rollback" && back == "" {
		err = &refusal{http.StatusConflict, text(o.slot) + " has no other generation to roll back to"}
	}
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	f.Title = f.Heading + "? · rocm-nightly"
	s.show(w, r, http.StatusOK, "confirm", f)
}

// ends are the generation that is active in a slot, and the one that a roll back goes to.
func ends(st *state.State, slot string) (active, back string) {
	for _, s := range st.Slots {
		if s.Slot == slot && s.Active != nil {
			return s.Active.Name, s.Back
		}
	}
	return "nothing", ""
}

// formAction does what a button of the page says, and shows the page again.
func (s *server) formAction(w http.ResponseWriter, r *http.Request) {
	sess := s.signed(w, r)
	if sess == nil {
		return
	}
	get := r.PostForm.Get
	o := order{action: r.PathValue("action"), job: get("job"), slot: get("slot"), version: get("version")}
	done, err := s.act(w, r, o, "page")
	if big := new(refusal); errors.As(err, &big) && big.status == http.StatusTooManyRequests {
		s.refuse(w, r, err)
		return
	}
	if err != nil {
		s.sessions.say(sess, flash{"It was not done: " + err.Error(), true})
	} else {
		s.sessions.say(sess, flash{"Done: " + done, false})
	}
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// refuse answers with why an order was not carried out.
func (s *server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if ref := new(refusal); errors.As(err, &ref) {
		s.fail(w, r, ref.status, "%s", ref.text)
		return
	}
	s.fail(w, r, http.StatusConflict, "%v", err)
}

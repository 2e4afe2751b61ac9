package store

import "context"

// CheckLink returns nil if Link could set path, else a *LinkError that says
// what is there and what to try. It changes nothing.
func (s *Store) CheckLink(path string) error {
	ls, err := s.LinkStatus(path)
	if err != nil {
		return err
	}
	return s.refuseLink(ls)
}

// Link is MakeLink for the link of an install of the config.
func (s *Store) Link(path string, sl *Slot) error {
	_, err := s.MakeLink(context.Background(), sl, LinkOptions{Path: path, By: LinkByConfig})
	return err
}

// Unlink is DropLink for who does not ask what became of it.
func (s *Store) Unlink(path string) error {
	_, err := s.DropLink(context.Background(), path)
	return err
}

// RemoveTarball removes a kept tarball, whoever wants it. The caller holds
// run.lock.
func (s *Store) RemoveTarball(t *Tarball) error { return s.removeTarball(t) }

// Package store keeps installed prefixes on disk: slots, each one channel and
// target, each with its generations, one of which is active. It knows nothing
// of the network and nothing of what is in a prefix but its manifest.
//
//	ROOT/slots/CHANNEL-TARGET/current -> generations/VERSION
//	ROOT/slots/CHANNEL-TARGET/generations/VERSION, VERSION-r2, …
//	ROOT/slots/CHANNEL-TARGET/{runs/NAME.json, seals/NAME.seal, state.json, checks.json, switch.lock}
//	ROOT/slots/CHANNEL-TARGET/{.staging-*, .dying-*}
//	ROOT/spool/CHANNEL/FILENAME/
//	ROOT/tarballs/CHANNEL/FILENAME/{tarball.json, 0000, 0001, …}
//	ROOT/slots/CHANNEL-TARGET/runs/GENERATION.intoto.json
//	ROOT/{store.json, ledger.jsonl, links.json, links.lock, run.lock}
//	ROOT/leases/PID-KEY.json
//
// The order in which an update uses it is LockRun, Stage, Reuse, Commit,
// Activate, Prune; docs/durability.md says what is durable after each step. It
// promises, each in a test of the same name:
//
//   - CurrentIsAlwaysComplete: once something was activated, current leads to
//     a whole generation at every instant, to readers and after kill -9 alike.
//     A generation's name is given by one rename, current is moved by one
//     rename, and a generation is renamed away before it is deleted.
//   - AKilledRunLeavesNothingToDo: whatever dies, the next run needs nobody's
//     help. What it left is told from the work of the living by a flock, which
//     the kernel drops with the process.
//   - NothingHasItsNameBeforeItIsDurable: the bytes of a generation are on the
//     disk before it has its name, and its name before current can lead to it.
//   - RollbackWaitsForNoRun: Rollback, Use and Activate are one rename under
//     switch.lock, held for milliseconds, while run.lock is somebody's for an
//     hour. They need no network and no space to speak of.
//   - RollbackIsNotUndone: what the user went back from is not brought back by
//     the next scheduled run (Skip); only something newer is.
//   - PruneKeepsWhatMatters: the active generation, the one before it and a held
//     one are never pruned.
//   - PruneLeavesWhatIsInUse: nor is one that a process maps, runs, has open, works
//     in, sees mounted or has leased, in a container too; nor one of which that
//     cannot be seen. It is judged by device and inode.
//   - PruneSeesWhoComesLate: who begins to use a generation while it is looked at
//     gets it back.
//   - TheSecondRunIsToldWhoIsFirst: run.lock names its holder at once, and a dead
//     one is never believed.
//   - TheModelHoldsThroughCrashes: wherever an operation ends, the slot is as it
//     was before it or after it, and everything goes on from there.
//   - StateCanBeLost: state.json is made anew from current and generations; a
//     damaged one is kept beside it; one of a newer program is refused.
//   - TheLedgerOnlyGrows: lines are appended durably and never changed; a line
//     torn by a power cut costs that line alone.
//   - ALedgerInARepository: a Ledger may be a file of somebody's repository;
//     nothing is left beside it, a link out of its directory is not followed,
//     and what git and editors leave in it costs no line.
//   - ChecksCanBeLost: what a server last said of what is installed is a
//     courtesy; where it is damaged, it is asked again.
//   - LinkTouchesOnlyItsOwn: /opt/rocm is set where nothing is or a link of
//     ours; anything else is left and described.
//   - TakeOverIsUndone: a symlink of somebody else is replaced only when that is
//     asked for, by an exchange of names, and what it pointed to is on record
//     before; it is put back unless somebody has changed the path since.
//   - InterruptedLinksAreFinished: whatever ends the making, taking over or
//     removing of a link, the next run ends it, and nothing is left beside it.
//   - HostFilesTouchOnlyTheirOwn: nor do the links in /etc, which come and go with
//     what is wanted, with the directories that were made for them.
//   - UninstallTakesWhatIsItsOwn: of a slot, or of the whole store; what is not
//     ours is left and named, and no link is followed out.
//   - InterruptedUninstallIsFinished: a slot that has its name is whole; one that
//     goes is out of sight by one rename before anything of it is deleted.
//   - SELinuxLabelsAreThoseOfUsr: programs and libraries have the types that the
//     machine's own have, and generations that share an inode agree about it.
//   - ReuseSecondNightCostsTheChangedBytes: equal files of a staged tree and of
//     older generations share their content, by reflink or by hard link. No
//     donor is believed: it is compared by the kernel or hashed again, and what
//     is damaged, foreign or writable is left.
//   - ReuseLeavesNothingAfterAKill: sharing only reads older generations, and
//     whatever ends it, they, current and what is staged stay whole.
//   - PruneLeavesSharedFilesAlone: a generation that goes changes nothing of
//     those that share files with it.
//   - TarballsAreKeptByARename: a kept tarball is the download itself, with a
//     record of what it is and who wants it; it is copied only to another file
//     system.
//   - AnInterruptedKeepIsADownloadOrATarball: and the next run comes to the same
//     end.
//   - TarballsStayWhileASlotWantsThem: one copy serves all slots.
//   - DamageOfAKeptTarballIsLocated: no reader comes to its end with a wrong byte,
//     and the error names the parts that are damaged.
//   - UmaskIsIgnored: what root installs everybody can read, and nobody else write;
//     default ACLs and a set group change nothing of it.
//   - NewerRecordsAreLeftAlone: a record, or a whole store, that a newer program
//     wrote is refused with words and not touched; one of an older is read, and
//     written in today's form when it is next written.
//   - ARunIsRefusedWhereLocksEndAtThisHost: on NFS with locks it works; on file
//     systems whose locks other hosts do not see a run is refused, unless Alone
//     says that there are none.
//   - RootLeavesNothingOfItsOwnInTheStoreOfAnother: where root works on the store
//     of a service, what it makes is the service's.
//   - AHostileOwnerGainsNothing: and whatever links that owner has laid, root does
//     nothing to files outside the store by them.
//   - VerifyNamesEveryDamage: what is not as it was installed is named, by kind;
//     who guards the lists is a seal beside the generation, which can be lost.
//   - MendPutsEverythingRight: a repaired generation is as it was, times included.
//     No file that is there is written to: a good copy, hashed again, takes its
//     place by a rename once it is durable.
//
// It does not promise to see files that processes have in flight between them, or
// registered with io_uring alone. Who writes to a hard-linked file as root changes
// it in every generation that has it; Verify names them all.
package store

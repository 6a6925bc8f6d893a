//! The number from which a log goes on after a kill.

use super::*;

/// The reservation was read from the system's cache, perhaps: a power cut could take it back.
#[test]
fn where_a_log_goes_on_is_told_when_its_reservation_is_durable_also_on_a_full_disk() {
    for durability in [Durability::MEMORY, Durability::OS] {
        let spec = LogSpec {
            durability,
            ..LogSpec::default()
        };
        let mut bench = Bench::open(MemoryFiles::new(), 1);
        bench.ask_to_open(1, LOG, spec);
        bench.poll();
        bench.out.clear();
        bench.append(0, 5);
        // All is on the disk when it has been waited for long enough.
        for _ in 0..5 {
            bench.now.mono = bench.now.mono.plus(tiny().unsynced_time);
            bench.poll();
        }
        let mut files = bench.storage.into_files();
        let opened = |bench: &mut Bench| {
            bench.ask_to_open(2, LOG, spec);
            bench.poll();
            match bench.out.drain(..).next_back() {
                Some(Completion::Opened { bounds, .. }) => bounds,
                other => panic!("{other:?}"),
            }
        };
        files.set_room(Some(files.used()));
        let mut bench = Bench::unopened(files, 2);
        let full = opened(&mut bench);
        assert!(bench.storage.trouble().is_some_and(|trouble| trouble.full));
        assert_eq!(full.next, Sequence(6), "{durability:?}");
        assert!(full.reach > full.next, "{full:?}");
        assert_eq!(bench.count(), 5);
        bench.storage.files_mut().set_room(None);
        bench.now.mono = bench.now.mono.plus(tiny().probe_interval);
        for _ in 0..5 {
            bench.poll();
        }
        let healed = opened(&mut bench);
        assert_eq!((healed.next, healed.reach), (full.reach, full.reach));
    }
}

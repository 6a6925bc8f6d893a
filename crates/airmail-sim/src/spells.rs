//! Bad spells of the disk: full, ailing, slow; each for a while, as a run draws them.

use crate::census::Kind;
use crate::entropy::Entropy;
use crate::evidence::Evidence;
use crate::files::Machine;
use crate::swarm::Swarm;
use airmail_model::Mono;
use std::time::Duration;

/// Spells that the disk is under, and their ends.
#[derive(Debug, Default)]
pub struct Spells {
    full: Option<Mono>,
    ailing: Option<Mono>,
    slow: Option<Mono>,
}

impl Spells {
    /// Ends the spells that are over, and begins those that the seed has in store.
    pub fn pass(
        &mut self,
        now: Mono,
        swarm: &Swarm,
        chance: &mut Entropy,
        machine: &Machine,
        evidence: &mut Evidence,
    ) {
        if begins(&mut self.full, now, swarm.fills_up, chance) {
            let room = chance.below(20_000);
            evidence.note(format_args!("the disk fills up, {room} bytes left"));
            machine
                .disks()
                .for_each(|mut disk| disk.set_room(Some(room)));
            evidence.count(Kind::DiskFilled);
        }
        if begins(&mut self.ailing, now, swarm.ails, chance) {
            evidence.note(format_args!("every sync fails"));
            machine.disks().for_each(|mut disk| disk.set_ailing(true));
            evidence.count(Kind::DiskAiling);
        }
        if begins(&mut self.slow, now, swarm.slows, chance) {
            evidence.note(format_args!("the disk is slow"));
            machine.disks().for_each(|mut disk| disk.set_slow(true));
            evidence.count(Kind::DiskSlow);
        }
        if ends(&mut self.full, now) {
            machine.disks().for_each(|mut disk| disk.set_room(None));
        }
        if ends(&mut self.ailing, now) {
            machine.disks().for_each(|mut disk| disk.set_ailing(false));
        }
        if ends(&mut self.slow, now) {
            machine.disks().for_each(|mut disk| disk.set_slow(false));
        }
    }

    /// Ends them all.
    pub fn break_up(&mut self, machine: &Machine) {
        *self = Spells::default();
        for mut disk in machine.disks() {
            disk.set_faults(Swarm::calm());
            disk.set_room(None);
            disk.set_ailing(false);
            disk.set_slow(false);
        }
    }
}

fn begins(until: &mut Option<Mono>, now: Mono, rate: u32, chance: &mut Entropy) -> bool {
    if until.is_some() || !chance.chance(rate) {
        return false;
    }
    // Most are short; some outlast every patience that there is.
    let most = if chance.chance(200_000) {
        5_000_000
    } else {
        200_000
    };
    *until = Some(now.plus(Duration::from_micros(chance.below(most))));
    true
}

fn ends(until: &mut Option<Mono>, now: Mono) -> bool {
    let over = until.is_some_and(|until| until <= now);
    if over {
        *until = None;
    }
    over
}

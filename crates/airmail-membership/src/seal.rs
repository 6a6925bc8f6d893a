//! Seals of datagrams: who sent one, that it is of the cluster, and that it is no old one again.
//!
//! ```text
//! version u8 · cluster u64 · boot u64 · count u64 · length of name u8 · name · what is said · HMAC-SHA256 (32)
//! ```
//!
//! Each node counts its datagrams; one whose count was seen before is dropped, and so is one that was overtaken by
//! [`WINDOW`] others. Without a secret there is no hash, which only loopback may be without.

use airmail_wire::{SECRET_HASH_BYTES, Secret};
use bytes::{Buf, BufMut};
use std::collections::BTreeMap;
use std::fmt;

/// The word that the hash of a datagram begins with.
const WORD: &[u8] = b"airmail membership";
/// Bytes before the name.
const HEAD_BYTES: usize = 1 + 8 + 8 + 8 + 1;
/// Most bytes that a seal adds.
pub(crate) const SEAL_BYTES_MAX: usize = HEAD_BYTES + NAME_BYTES_MAX + SECRET_HASH_BYTES;
/// Most bytes of a name.
const NAME_BYTES_MAX: usize = 64;
/// Senders whose counts are remembered. Beyond it the one with the oldest start is forgotten.
const SENDERS_MAX: usize = 4096;

/// Datagrams of one sender that may overtake another.
const WINDOW: u32 = u64::BITS;

/// Speech of a cluster's nodes, which is the version of its datagrams: nodes of different speech do not understand
/// each other, and are told so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speech {
    /// Gossip: nodes tell each other of all ([`Membership`](crate::Membership)).
    Gossip,
    /// Questions to the nodes of a fixed list ([`PeerList`](crate::PeerList)).
    PeerList,
}

impl Speech {
    fn version(self) -> u8 {
        match self {
            Speech::Gossip => 1,
            Speech::PeerList => 2,
        }
    }

    fn of_version(version: u8) -> Option<Speech> {
        [Speech::Gossip, Speech::PeerList]
            .into_iter()
            .find(|speech| speech.version() == version)
    }
}

impl fmt::Display for Speech {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Speech::Gossip => "gossip",
            Speech::PeerList => "a fixed list of peers",
        })
    }
}

/// Counts of a sender that have come.
#[derive(Clone, Copy, Debug)]
struct Seen {
    boot: u64,
    highest: u64,
    /// Those below the highest, the nearest first.
    below: u64,
}

impl Seen {
    fn first(boot: u64, count: u64) -> Seen {
        Seen {
            boot,
            highest: count,
            below: 0,
        }
    }

    /// Takes note of a count; whether it is new.
    fn take(&mut self, boot: u64, count: u64) -> bool {
        if boot != self.boot {
            let is_newer = boot > self.boot;
            if is_newer {
                *self = Seen::first(boot, count);
            }
            return is_newer;
        }
        if count > self.highest {
            let by = u32::try_from(count - self.highest).unwrap_or(u32::MAX);
            let moved = self.below.checked_shl(by).unwrap_or(0);
            let highest = 1u64.checked_shl(by - 1).unwrap_or(0);
            (self.highest, self.below) = (count, moved | highest);
            return true;
        }
        let behind = self.highest - count;
        if behind == 0 || behind > WINDOW.into() {
            return false;
        }
        let bit = 1 << (behind - 1);
        let is_new = self.below & bit == 0;
        self.below |= bit;
        is_new
    }
}

/// Reason for which a datagram is dropped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// It is too short, or of a version that this release does not know.
    #[error("no datagram of a version that is known")]
    Malformed,
    /// Its sender is of the cluster, and does not speak as this node does.
    #[error(
        "of a node of this cluster that uses {0}, as this one does not: all nodes of a cluster have cluster.peers, or \
         none has"
    )]
    Speech(Speech),
    /// It is of another cluster.
    #[error("of cluster {0:016x}")]
    Cluster(u64),
    /// Its sender has not the cluster's secret, or somebody has changed it.
    #[error("without the cluster's secret")]
    Secret,
    /// It has come already, or is of before many others that have.
    #[error("old")]
    Old,
}

/// Sealer and opener of datagrams.
#[derive(Debug)]
pub struct Seal {
    speech: Speech,
    cluster: u64,
    secret: Option<Secret>,
    name: String,
    boot: u64,
    count: u64,
    /// Counts that have come, by the sender's name.
    seen: BTreeMap<String, Seen>,
}

impl Seal {
    /// The seal of a start of a node that gossips.
    #[must_use]
    pub fn new(cluster: u64, secret: Option<Secret>, name: &str, boot: u64) -> Seal {
        Seal {
            speech: Speech::Gossip,
            cluster,
            secret,
            name: name.chars().take(NAME_BYTES_MAX).collect(),
            boot,
            count: 0,
            seen: BTreeMap::new(),
        }
    }

    /// The same seal, of a node that speaks so.
    #[must_use]
    pub fn speaking(self, speech: Speech) -> Seal {
        Seal { speech, ..self }
    }

    /// A datagram that says this.
    #[must_use]
    pub fn seal(&mut self, said: &[u8]) -> Vec<u8> {
        self.count += 1;
        let mut bytes = Vec::with_capacity(SEAL_BYTES_MAX + said.len());
        bytes.put_u8(self.speech.version());
        bytes.put_u64(self.cluster);
        bytes.put_u64(self.boot);
        bytes.put_u64(self.count);
        let name = self.name.as_bytes();
        bytes.put_u8(u8::try_from(name.len()).unwrap_or(u8::MAX));
        bytes.put_slice(name);
        bytes.put_slice(said);
        if let Some(hash) = self
            .secret
            .as_ref()
            .and_then(|secret| secret.hash([WORD, &bytes]))
        {
            bytes.put_slice(&hash.bytes());
        }
        bytes
    }

    /// The words of a datagram.
    ///
    /// # Errors
    /// It is to be dropped.
    pub fn open<'a>(&mut self, datagram: &'a [u8]) -> Result<&'a [u8], SealError> {
        let sealed = match &self.secret {
            None => datagram,
            Some(secret) => {
                let Some(length) = datagram.len().checked_sub(SECRET_HASH_BYTES) else {
                    // Input: it is shorter than a hash.
                    return Err(SealError::Malformed);
                };
                let (sealed, said) = datagram.split_at(length);
                let hash = secret.hash([WORD, sealed]);
                if !hash.is_some_and(|hash| hash.is(said)) {
                    return Err(SealError::Secret);
                }
                sealed
            }
        };
        let mut rest = sealed;
        if rest.len() < HEAD_BYTES {
            return Err(SealError::Malformed);
        }
        let speech = Speech::of_version(rest.get_u8()).ok_or(SealError::Malformed)?;
        let (cluster, boot, count) = (rest.get_u64(), rest.get_u64(), rest.get_u64());
        let name = usize::from(rest.get_u8());
        if cluster != self.cluster {
            return Err(SealError::Cluster(cluster));
        }
        if speech != self.speech {
            return Err(SealError::Speech(speech));
        }
        let Some((name, said)) = rest.split_at_checked(name) else {
            // Input: the name would be longer than the datagram.
            return Err(SealError::Malformed);
        };
        let name = std::str::from_utf8(name).map_err(|_| SealError::Malformed)?;
        if let Some(seen) = self.seen.get_mut(name) {
            return seen.take(boot, count).then_some(said).ok_or(SealError::Old);
        }
        if self.seen.len() >= SENDERS_MAX {
            let oldest = self.seen.iter().min_by_key(|(_, seen)| seen.boot);
            let oldest = oldest.map(|(name, _)| name.clone());
            oldest.and_then(|name| self.seen.remove(&name));
        }
        self.seen.insert(name.to_owned(), Seen::first(boot, count));
        Ok(said)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(byte: u8) -> Option<Secret> {
        Secret::new(vec![byte; 32])
    }

    fn seal(name: &str, boot: u64, of: Option<Secret>) -> Seal {
        Seal::new(5, of, name, boot)
    }

    #[test]
    fn what_was_sealed_is_said_with_a_secret_and_without_one() {
        for of in [None, secret(1)] {
            let datagram = seal("a", 1, of.clone()).seal(b"hello");
            assert_eq!(seal("b", 1, of).open(&datagram), Ok(&b"hello"[..]));
        }
    }

    #[test]
    fn a_datagram_that_is_recorded_and_sent_again_is_dropped() {
        let (mut a, mut b) = (seal("a", 1, secret(1)), seal("b", 1, secret(1)));
        let first = a.seal(b"one");
        let second = a.seal(b"two");
        assert_eq!(b.open(&second), Ok(&b"two"[..]));
        assert_eq!(b.open(&second), Err(SealError::Old));
        // It was overtaken.
        assert_eq!(b.open(&first), Ok(&b"one"[..]));
        assert_eq!(b.open(&first), Err(SealError::Old));
        // A node that was started again counts anew; one from before it is old.
        let again = seal("a", 2, secret(1)).seal(b"again");
        assert_eq!(b.open(&again), Ok(&b"again"[..]));
        assert_eq!(b.open(&a.seal(b"three")), Err(SealError::Old));
    }

    #[test]
    fn each_count_is_taken_once_in_any_order_and_none_from_far_behind() {
        for seed in 0..100 {
            let mut order: Vec<u64> = (1..=500).collect();
            let mut state = seed;
            for at in 0..order.len() {
                state = airmail_model::random::mixed(state + 1);
                let other = (at + (state % 30) as usize).min(order.len() - 1);
                order.swap(at, other);
            }
            let mut seen = Seen::first(1, order[0]);
            let mut taken = std::collections::BTreeSet::from([order[0]]);
            for count in &order[1..] {
                let near = seen.highest.saturating_sub(*count) <= WINDOW.into();
                assert_eq!(seen.take(1, *count), near, "{count} after {}", seen.highest);
                assert!(!seen.take(1, *count));
                taken.extend(near.then_some(*count));
            }
            assert!(taken.len() > 300);
            assert!(!seen.take(1, 500 - 65), "it is too far behind");
            assert!(seen.take(1, 10_000) && !seen.take(1, 500));
        }
    }

    #[test]
    fn no_datagram_is_taken_of_another_secret_or_cluster_or_changed_on_the_way() {
        let mut b = seal("b", 1, secret(1));
        for other in [None, secret(2)] {
            let datagram = seal("a", 1, other).seal(b"some words that are long enough for a hash");
            assert_eq!(b.open(&datagram), Err(SealError::Secret));
        }
        let datagram = seal("a", 1, secret(1)).seal(b"hello");
        for at in 0..datagram.len() {
            let mut changed = datagram.clone();
            changed[at] ^= 1;
            assert_eq!(b.open(&changed), Err(SealError::Secret), "byte {at}");
            assert!(b.open(&datagram[..at]).is_err(), "cut at {at}");
        }
        let elsewhere = Seal::new(6, secret(1), "a", 1).seal(b"hello");
        assert_eq!(b.open(&elsewhere), Err(SealError::Cluster(6)));
        assert_eq!(b.open(&datagram), Ok(&b"hello"[..]));
    }

    #[test]
    fn nothing_short_or_strange_is_taken_without_a_secret() {
        let mut b = seal("b", 1, None);
        let datagram = seal("a", 1, None).seal(b"");
        for at in 0..datagram.len() {
            assert!(b.open(&datagram[..at]).is_err());
        }
        let mut other = datagram.clone();
        other[0] = 3;
        assert_eq!(b.open(&other), Err(SealError::Malformed));
    }

    #[test]
    fn nodes_that_gossip_and_nodes_with_a_fixed_list_do_not_take_each_other_s_datagrams_and_say_why()
     {
        let listed = |name: &str| seal(name, 1, secret(1)).speaking(Speech::PeerList);
        let (mut a, mut b) = (seal("a", 1, secret(1)), listed("b"));
        let refused = a.open(&b.seal(b"hello")).map(<[u8]>::to_vec);
        assert_eq!(refused, Err(SealError::Speech(Speech::PeerList)));
        let refused = b.open(&a.seal(b"hello")).map(<[u8]>::to_vec);
        assert_eq!(refused, Err(SealError::Speech(Speech::Gossip)));
        assert_eq!(listed("c").open(&b.seal(b"hello")), Ok(&b"hello"[..]));
    }

    #[test]
    fn no_more_senders_are_remembered_than_there_is_room_for() {
        let mut b = seal("b", 1, None);
        for sender in 0..2 * SENDERS_MAX as u64 {
            let datagram = seal(&format!("node-{sender}"), sender, None).seal(b"x");
            assert!(b.open(&datagram).is_ok());
        }
        assert_eq!(b.seen.len(), SENDERS_MAX);
    }
}

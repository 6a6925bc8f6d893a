//! Times that clients were without service, by the kind of fault.

use super::load::Waits;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;
use tokio::time::Instant;

/// Waits below this are those of a machine that has much to do, and of no fault.
const CONCERNED: Duration = Duration::from_millis(150);

/// Time beyond what librdkafka alone was without an ack in the same round.
const BEYOND_LIBRDKAFKA: &str = "broker, beyond librdkafka alone";

/// The bounds of a kind: of the median, and of the 99th percentile.
const BOUNDS: [(&str, Duration, Duration); 9] = [
    (
        "tower killed",
        Duration::from_secs(1),
        Duration::from_secs(3),
    ),
    (
        "tower stopped or cut",
        Duration::from_secs(1),
        Duration::from_secs(3),
    ),
    (
        "gateway killed",
        Duration::from_secs(1),
        Duration::from_secs(3),
    ),
    (
        "gateway stopped or cut",
        Duration::from_secs(2),
        Duration::from_secs(4),
    ),
    (
        "tower, from when it is back",
        Duration::from_secs(1),
        Duration::from_secs(3),
    ),
    (
        "tower held in its reading",
        Duration::from_secs(2),
        Duration::from_secs(4),
    ),
    (
        BEYOND_LIBRDKAFKA,
        Duration::from_secs(2),
        Duration::from_secs(2),
    ),
    (
        "parent killed",
        Duration::from_millis(500),
        Duration::from_millis(1_500),
    ),
    (
        "drained",
        Duration::from_millis(200),
        Duration::from_millis(200),
    ),
];

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Times {
    by_kind: BTreeMap<&'static str, Vec<Duration>>,
    unconcerned: usize,
}

impl Times {
    /// Takes the longest wait of each of these clients since the load's mark; or the time from `back` until the first
    /// thing came.
    pub(super) fn take(
        &mut self,
        kind: &'static str,
        clients: impl IntoIterator<Item = Waits>,
        back: Option<Instant>,
    ) {
        for waits in clients {
            let wait = match (back, waits.first) {
                (Some(back), Some(first)) => first.saturating_duration_since(back),
                _ => waits.longest,
            };
            if wait < CONCERNED && back.is_none() {
                self.unconcerned += 1;
            } else {
                self.by_kind.entry(kind).or_default().push(wait);
            }
        }
    }

    /// Takes waits beside a broker that was hurt, and how much longer each is than that of librdkafka alone.
    pub(super) fn take_beside_broker(&mut self, clients: Vec<Waits>, bare: Duration) {
        let longest = clients.iter().map(|waits| waits.longest);
        let concerned = longest.filter(|wait| *wait >= CONCERNED);
        let beyond = concerned.map(|wait| wait.saturating_sub(bare));
        let all = self.by_kind.entry(BEYOND_LIBRDKAFKA).or_default();
        all.extend(beyond);
        let alone = self.by_kind.entry("librdkafka alone").or_default();
        alone.push(bare);
        self.take("broker", clients, None);
    }

    /// Fails if clients waited for longer than they may.
    pub(super) fn judge(&self) {
        for (kind, middle, high) in BOUNDS {
            let Some(waits) = self.by_kind.get(kind) else {
                continue;
            };
            let (p50, p99) = (part(waits, 50), part(waits, 99));
            assert!(
                p50 <= middle && p99 <= high,
                "{kind}: p50 {p50:?}, p99 {p99:?}"
            );
        }
    }
}

fn part(waits: &[Duration], percent: usize) -> Duration {
    let mut sorted = waits.to_vec();
    sorted.sort_unstable();
    let at = (sorted.len() * percent).div_ceil(100).max(1) - 1;
    sorted.get(at).copied().unwrap_or_default()
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (kind, waits) in &self.by_kind {
            let [p50, p99, most] = [50, 99, 100].map(|percent| part(waits, percent).as_millis());
            write!(
                f,
                "{kind}: {} waited, ms p50 {p50}, p99 {p99}, most {most}; ",
                waits.len()
            )?;
        }
        write!(
            f,
            "{} waited for less than {} ms",
            self.unconcerned,
            CONCERNED.as_millis()
        )
    }
}

//! Decisions of a node's publish gate while a run is under way, asked of the node itself.
//!
//! Every decision has a number, the bound under which its window was measured and the one that came of it,
//! so nothing is paired that does not belong together, and one that was missed is known. Gauges of metrics
//! show the last one alone: a bound beside what was in flight under another.
//!
//! A node tells how long ago a decision was. Each is told several times, so the earliest moment that an
//! answer gives is the one least late.

use super::Window;
use airmail_bench::clock::now_us;
use airmail_bench::system::Failure;
use airmail_client::{Client, FlowDecision};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time between questions. A node keeps its last 128 decisions: fewer are made in several of these.
const INTERVAL: Duration = Duration::from_millis(15);
/// Name of the gate.
const GATE: &str = "publish";

/// Decisions that were seen, by number.
#[derive(Debug, Default)]
struct Seen(BTreeMap<u64, Window>);

impl Seen {
    /// Enters an answer's decisions, the answer having come so long after the run began.
    fn enter(&mut self, seconds: f64, decisions: Vec<FlowDecision>) {
        for decision in decisions {
            let seconds = seconds - decision.age.as_secs_f64();
            let known = self.0.entry(decision.number);
            let window = known.or_insert_with(|| window(decision, seconds));
            window.seconds = window.seconds.min(seconds);
        }
    }

    /// Those since the run began, in their order and in that of time.
    fn into_windows(self) -> Vec<Window> {
        let mut latest_s = 0.0_f64;
        let windows = self.0.into_values();
        let of_run = windows.filter(|window| window.seconds > 0.0);
        let in_order = of_run.map(|mut window| {
            latest_s = latest_s.max(window.seconds);
            window.seconds = latest_s;
            window
        });
        in_order.collect()
    }
}

fn window(decision: FlowDecision, seconds: f64) -> Window {
    Window {
        number: decision.number,
        seconds,
        bound: decision.bound_before,
        bound_after: decision.bound,
        in_flight: decision.in_flight,
        latency_s: decision.latency.as_secs_f64(),
        rate_per_s: decision.rate_per_s,
        rule: decision.rule.into(),
    }
}

/// Asks a node for its decisions until it is stopped or dropped, in a thread of its own: the publishers'
/// is busy.
#[derive(Debug)]
pub(super) struct DecisionWatch {
    stop: Arc<AtomicBool>,
    looking: Option<JoinHandle<Seen>>,
}

impl DecisionWatch {
    /// Watches the node at `airmail://HOST:PORT`, in a run that begins at `start_us`. An answer that does
    /// not come is left out.
    ///
    /// # Errors
    /// The system has no thread for it.
    pub(super) fn start(url: &str, start_us: u64) -> Result<DecisionWatch, Failure> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let url = url.to_owned();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = runtime.map_err(Failure::new)?;
        let look = move || runtime.block_on(watch(&url, start_us, &stopped));
        let thread = std::thread::Builder::new().name("decisions".into());
        Ok(DecisionWatch {
            stop,
            looking: Some(thread.spawn(look).map_err(Failure::new)?),
        })
    }

    /// All that it saw.
    pub(super) fn stop(mut self) -> Vec<Window> {
        self.stop.store(true, Ordering::Relaxed);
        let looking = self.looking.take();
        let seen = looking.and_then(|looking| looking.join().ok());
        seen.unwrap_or_default().into_windows()
    }
}

impl Drop for DecisionWatch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

async fn watch(url: &str, start_us: u64, stop: &AtomicBool) -> Seen {
    let mut seen = Seen::default();
    let Ok(client) = Client::builder().url(url).connect().await else {
        return seen;
    };
    let admin = client.admin();
    loop {
        // Once more after the end: what was decided meanwhile is in it.
        let last = stop.load(Ordering::Relaxed);
        let gates = admin.flow().await.unwrap_or_default();
        let seconds = (now_us() as f64 - start_us as f64) / 1e6;
        let gate = gates.into_iter().find(|gate| gate.name == GATE);
        seen.enter(seconds, gate.map(|gate| gate.recent).unwrap_or_default());
        if last {
            return seen;
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decision(number: u64, age_ms: u64) -> FlowDecision {
        FlowDecision {
            number,
            age: Duration::from_millis(age_ms),
            bound_before: 100,
            bound: 200,
            in_flight: 90.0,
            latency: Duration::from_millis(1),
            rate_per_s: 90_000.0,
            rule: "gradient-changed".into(),
        }
    }

    #[test]
    fn each_decision_counts_once_at_the_earliest_moment_told() {
        let mut seen = Seen::default();
        seen.enter(0.010, vec![decision(1, 20), decision(2, 4)]);
        seen.enter(0.030, vec![decision(2, 28), decision(3, 1), decision(5, 0)]);
        seen.enter(0.050, vec![decision(3, 24), decision(5, 30)]);
        let windows = seen.into_windows();
        let numbers: Vec<u64> = windows.iter().map(|window| window.number).collect();
        // The first was before the run, the fourth was not told.
        assert_eq!(numbers, [2, 3, 5]);
        let moments: Vec<f64> = windows.iter().map(|window| window.seconds).collect();
        assert!((moments[0] - 0.002).abs() < 1e-9 && (moments[1] - 0.026).abs() < 1e-9);
        // What was decided later did not happen before.
        assert_eq!(moments[2], moments[1]);
        assert_eq!((windows[0].bound, windows[0].bound_after), (100, 200));
        assert!(windows[0].tells_a_change());
    }
}

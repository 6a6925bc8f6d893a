//! The files that a run has written, read again: its sweeps, and each limiter beside the knee.
//!
//! Storages whose capacity changes are left out: what limiters do there is told by phases, none of which lasts.

use super::case::{Case, Place, Setup, Storage};
use super::plan::{Plan, Preset};
use airmail_experiments::flow::{Distribution, Sweep};
use airmail_flow::{GateSettings, LimiterKind};
use airmail_queueing::knee::Measurement;
use anyhow::{Context as _, anyhow};
use clap::ValueEnum as _;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::str::FromStr;

/// Everything that is read of a run.
#[derive(Debug)]
pub(crate) struct Written {
    /// Sweeps, in the order of their file.
    pub(crate) sweeps: Vec<(Setup, Sweep)>,
    limiters: Vec<BesideFixed>,
}

/// A limiter that ran beside a fixed bound at the knee.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BesideFixed {
    /// The case.
    pub(crate) case: Case,
    /// Share of the fixed bound's throughput: median of the rounds.
    pub(crate) rate_share: f64,
    /// Mean length of a run, in seconds.
    pub(crate) span_s: f64,
}

/// The part of `flow.json` that is read.
#[derive(Deserialize)]
struct Document {
    rows: Vec<CaseRow>,
}

#[derive(Deserialize)]
struct CaseRow {
    topics: u32,
    distribution: String,
    limiter: String,
    storage: String,
    #[serde(rename = "where")]
    place: String,
    publishers: u32,
    rounds: u32,
    /// Messages of all rounds.
    #[serde(default)]
    messages: f64,
    #[serde(default)]
    throughput_per_s: Option<f64>,
    rate_share: Option<f64>,
}

impl Written {
    /// Reads `flow-sweep.csv` and `flow.json` in a directory.
    ///
    /// # Errors
    /// One of them is not there, or does not have what `airmail-lab flow` writes.
    pub(crate) fn read(directory: &Path) -> anyhow::Result<Written> {
        let file = |name: &str| {
            let path = directory.join(name);
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
        };
        let sweeps = sweeps(&file("flow-sweep.csv")?).context("flow-sweep.csv")?;
        let document = serde_json::from_str(&file("flow.json")?);
        let Document { rows } = document.context("flow.json")?;
        let limiters = rows.iter().filter_map(|row| row.beside_fixed().transpose());
        let limiters = limiters.collect::<anyhow::Result<_>>();
        Ok(Written {
            sweeps,
            limiters: limiters.context("flow.json")?,
        })
    }

    /// The limiters that are held against the knee of this setup, whatever the distribution.
    pub(crate) fn limiters(&self, swept: Setup) -> impl Iterator<Item = &BesideFixed> {
        let limiters = self.limiters.iter();
        limiters.filter(move |found| found.case.setup.swept() == swept)
    }
}

impl BesideFixed {
    /// Settings of its gate, as they come where nothing else is asked for. N is of all publishers together.
    pub(crate) fn gate(&self) -> GateSettings {
        let Case { setup, limiter } = self.case;
        let mut gate = Plan::of(Preset::Node).throttling(limiter).gate();
        gate.window_messages *= u64::from(setup.limiters());
        gate
    }
}

impl CaseRow {
    /// Nothing if it is the fixed bound itself, was beside none, or its storage's capacity changed.
    fn beside_fixed(&self) -> anyhow::Result<Option<BesideFixed>> {
        let measured = self.rate_share.zip(self.throughput_per_s);
        let (Some(storage), Some((rate_share, rate_per_s))) = (steady(&self.storage), measured)
        else {
            return Ok(None);
        };
        let limiter = parsed(&self.limiter)?;
        let setup = Setup {
            storage,
            place: place(&self.place)?,
            publishers: self.publishers,
            topics: self.topics,
            distribution: parsed(&self.distribution)?,
        };
        let beside = BesideFixed {
            case: Case { setup, limiter },
            rate_share,
            span_s: self.messages / f64::from(self.rounds) / rate_per_s,
        };
        Ok((limiter != LimiterKind::Fixed).then_some(beside))
    }
}

fn sweeps(csv: &str) -> anyhow::Result<Vec<(Setup, Sweep)>> {
    let mut lines = csv.lines();
    let head: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let mut sweeps: Vec<(Setup, Sweep)> = Vec::new();
    for (number, line) in lines.enumerate() {
        // No cell of this file has a comma in it.
        let cells: BTreeMap<&str, &str> = head.iter().copied().zip(line.split(',')).collect();
        let run = swept_run(&cells).with_context(|| format!("line {}", number + 2))?;
        let Some((setup, run)) = run else {
            continue;
        };
        match sweeps.iter_mut().find(|(known, _)| *known == setup) {
            Some((_, sweep)) => sweep.enter(run),
            None => {
                let mut sweep = Sweep::default();
                sweep.enter(run);
                sweeps.push((setup, sweep));
            }
        }
    }
    Ok(sweeps)
}

/// A run under a fixed bound; nothing if its storage's capacity changed.
fn swept_run(cells: &BTreeMap<&str, &str>) -> anyhow::Result<Option<(Setup, Measurement)>> {
    let cell = |name: &str| {
        let cell = cells.get(name).copied();
        cell.with_context(|| format!("there is no {name}"))
    };
    let Some(storage) = steady(cell("storage")?) else {
        return Ok(None);
    };
    let setup = Setup {
        storage,
        place: place(cell("where")?)?,
        publishers: parsed(cell("publishers")?)?,
        topics: parsed(cell("topics")?)?,
        distribution: Distribution::Uniform,
    };
    let run = Measurement {
        bound: parsed(cell("bound")?)?,
        rate_per_s: parsed(cell("rate_per_s")?)?,
        latency_s: parsed(cell("latency_s")?)?,
    };
    Ok(Some((setup, run)))
}

/// The storage of this name, or with this option, if its capacity never changes.
fn steady(text: &str) -> Option<Storage> {
    let mut steady = [Storage::Memory, Storage::Disk].into_iter();
    steady.find(|storage| storage.name() == text || storage.option().as_deref() == Some(text))
}

fn place(text: &str) -> anyhow::Result<Place> {
    let places = Place::value_variants().iter().copied();
    let mut named = places.filter(|place| place.name() == text);
    named
        .next()
        .with_context(|| format!("`{text}` is no place of a limiter"))
}

fn parsed<T: FromStr<Err: Error>>(text: &str) -> anyhow::Result<T> {
    let parsed = text.parse();
    parsed.map_err(|error: T::Err| anyhow!("`{text}`: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWEEP: &str = "storage,where,publishers,topics,bound,rate_per_s,latency_s\n\
                         --log=memory:,pilot,2,16,545,2900000.5,0.0001\n\
                         --log=memory:?service_us=1000,pilot,2,1,545,500000,0.001\n\
                         disk,publisher,2,16,1,6000,0.0003\n\
                         disk,publisher,2,16,1,6200,0.00029\n\
                         shared-disk,publisher,2,1,1,3000,0.0006\n";

    #[test]
    fn every_run_is_in_the_sweep_of_its_setup_and_changing_capacities_in_none() {
        let sweeps = sweeps(SWEEP).unwrap();
        let found: Vec<(Storage, Place, u32, usize)> = sweeps
            .iter()
            .map(|(setup, sweep)| {
                (
                    setup.storage,
                    setup.place,
                    setup.topics,
                    sweep.runs().count(),
                )
            })
            .collect();
        let expected = [
            (Storage::Memory, Place::Pilot, 16, 1),
            (Storage::Disk, Place::Publisher, 16, 2),
        ];
        assert_eq!(found, expected);
        let run = sweeps[0].1.runs().next().unwrap();
        assert_eq!(
            (run.bound, run.rate_per_s, run.latency_s),
            (545, 2_900_000.5, 0.0001)
        );
    }

    #[test]
    fn what_is_wrong_in_a_sweep_is_told_with_its_line() {
        for (broken, said) in [
            (SWEEP.replace("6200", "quick"), "line 5"),
            (SWEEP.replace("disk,publisher", "disk,broker"), "`broker`"),
            (SWEEP.replace("latency_s", "latency"), "no latency_s"),
        ] {
            let error = sweeps(&broken).unwrap_err();
            assert!(format!("{error:#}").contains(said), "{error:#}");
        }
    }

    #[test]
    fn a_limiter_has_the_length_of_its_runs_and_a_fixed_bound_is_none() {
        let row = |limiter: &str, storage: &str| -> CaseRow {
            let row = serde_json::json!({
                "topics": 1, "distribution": "poisson", "limiter": limiter, "storage": storage,
                "where": "publisher", "publishers": 2, "rounds": 2, "messages": 20_000_000,
                "throughput_per_s": 2e6, "rate_share": 0.9, "bound": null,
            });
            serde_json::from_value(row).unwrap()
        };
        let found = row("ladder", "disk").beside_fixed().unwrap().unwrap();
        assert_eq!(
            (found.case.limiter, found.rate_share),
            (LimiterKind::Ladder, 0.9)
        );
        assert!((found.span_s - 5.0).abs() < 1e-9);
        assert_eq!(found.case.setup.distribution, Distribution::Poisson);
        for (limiter, storage) in [("fixed", "disk"), ("ladder", "served")] {
            assert!(row(limiter, storage).beside_fixed().unwrap().is_none());
        }
        assert!(row("vegas", "disk").beside_fixed().is_err());
    }
}

//! One `airmail sub --json` whose output goes to a file, and a thread that reads that file as it grows.
//!
//! Each message must be printed without the next one or the command's end; SIGTERM ends it with
//! whole lines.

use crate::proof::hostile::history::{Event, History, Hole, Place};
use crate::proof::load::Topic;
use crate::proof::stamp::Stamp;
use crate::proof::victim::Victim;
use airmail_client::{GapReason, Position};
use airmail_testkit::node::{airmail, signal, wait_until};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::process::Signal;
use serde_json::Value;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Interval at which the files are looked at.
const LOOK: Duration = Duration::from_millis(5);

/// A command that runs. Killed when dropped.
pub(super) struct Printing {
    child: Child,
    done: Arc<AtomicBool>,
    listener: Option<JoinHandle<Option<Position>>>,
}

impl Printing {
    pub(super) fn start(
        victim: &Victim,
        history: &Arc<History>,
        outputs: &Path,
        id: usize,
        topic: &Topic,
        from: &str,
    ) -> Printing {
        let file = |what: &str| -> PathBuf {
            let names = (0..).map(|time: u32| outputs.join(format!("{id}-{time}.{what}")));
            let mut free = names.skip_while(|path| path.exists());
            free.next().unwrap()
        };
        let (printed, told) = (file("out"), file("err"));
        let mut command = airmail();
        command.args(["sub", &topic.name, "--namespace", topic.namespace, "--json"]);
        command.args(["--from", from]);
        command.env("AIRMAIL_URL", format!("airmail://{}", victim.address));
        command.stdout(Stdio::from(File::create(&printed).unwrap()));
        command.stderr(Stdio::from(File::create(&told).unwrap()));
        let child = command.spawn().unwrap();
        let done = Arc::new(AtomicBool::new(false));
        let mut listening = Listening {
            id,
            topic: topic.index,
            printed: Tail::open(&printed),
            told: Tail::open(&told),
            history: Arc::clone(history),
            position: from.parse().ok(),
        };
        let until = Arc::clone(&done);
        let listen = move || {
            while !until.load(Ordering::Relaxed) {
                listening.look();
                thread::sleep(LOOK);
            }
            listening.look();
            listening.finish()
        };
        let listener = thread::Builder::new().name("printed".into()).spawn(listen);
        Printing {
            child,
            done,
            listener: Some(listener.unwrap()),
        }
    }

    /// SIGTERM; gives the position after what it has printed.
    pub(super) fn end(mut self) -> Option<Position> {
        if self.child.try_wait().unwrap().is_none() {
            signal(&self.child, Signal::TERM);
        }
        wait_until("airmail sub to end by SIGTERM", || {
            self.child.try_wait().unwrap().is_some()
        });
        self.done.store(true, Ordering::Relaxed);
        self.listener
            .take()
            .and_then(|listener| listener.join().unwrap())
    }
}

impl Drop for Printing {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
        self.done.store(true, Ordering::Relaxed);
        if let Some(listener) = self.listener.take() {
            listener.join().ok();
        }
    }
}

/// A file that grows, by lines.
struct Tail {
    file: File,
    rest: Vec<u8>,
}

impl Tail {
    fn open(path: &Path) -> Tail {
        let mut file = File::open(path).unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();
        Tail {
            file,
            rest: Vec::new(),
        }
    }

    /// The lines that have been finished since the last time.
    fn lines(&mut self) -> Vec<String> {
        self.file.read_to_end(&mut self.rest).unwrap();
        let Some(end) = self.rest.iter().rposition(|byte| *byte == b'\n') else {
            return Vec::new();
        };
        let rest = self.rest.split_off(end + 1);
        let whole = std::mem::replace(&mut self.rest, rest);
        let text = String::from_utf8_lossy(&whole);
        text.lines().map(str::to_owned).collect()
    }
}

/// The reader of the two files.
struct Listening {
    id: usize,
    topic: u32,
    printed: Tail,
    told: Tail,
    history: Arc<History>,
    position: Option<Position>,
}

impl Listening {
    /// Notes what is new, a gap where it belongs: it is told after what stands before it was written,
    /// and before what stands behind it. So what is printed is read before and after what is told.
    fn look(&mut self) {
        let mut printed = self.printed.lines();
        let told = self.told.lines();
        let gap = told.iter().find_map(|line| gap_of(line));
        if gap.is_some() {
            printed.extend(self.printed.lines());
        }
        let split = gap.map_or(printed.len(), |gap| self.place_of(gap, &printed));
        printed[..split].iter().for_each(|line| self.message(line));
        told.iter().for_each(|line| self.gap(line));
        printed[split..].iter().for_each(|line| self.message(line));
    }

    /// Finds the line before which a gap belongs: the first that stands behind it, or does not
    /// follow on the one before; else after all.
    fn place_of(&self, gap: Hole, printed: &[String]) -> usize {
        let mut last = self.position.clone();
        let behind = printed.iter().position(|line| {
            let position = position_of(line);
            let here = position.as_ref().map(|position| position.logs[0]);
            let before = std::mem::replace(&mut last, position);
            let before = before.map(|position| position.logs[0]);
            match (before, here) {
                (_, Some(here)) if here.next.0.saturating_sub(1) > gap.last => true,
                (Some(before), Some(here)) => {
                    before.incarnation != here.incarnation || here.next <= before.next
                }
                _ => false,
            }
        });
        behind.unwrap_or(printed.len())
    }

    fn message(&mut self, line: &str) {
        let reader = self.id;
        let event = self.read(line).map_or_else(
            || Event::Wrong {
                reader,
                why: format!("printed what nobody published to it: {line}"),
            },
            |(place, stamp)| Event::Given {
                reader,
                place,
                stamp,
            },
        );
        self.history.note(event);
        self.position = position_of(line).or(self.position.take());
    }

    fn read(&self, line: &str) -> Option<(Place, Stamp)> {
        let json: Value = serde_json::from_str(line).ok()?;
        let payload = match (json["payload"].as_str(), json["payload_base64"].as_str()) {
            (Some(text), _) => text.as_bytes().to_vec(),
            (_, Some(encoded)) => STANDARD.decode(encoded).ok()?,
            _ => return None,
        };
        let place = Place {
            life: position_of(line)?.logs[0].incarnation.0,
            number: json["sequence"].as_u64()?,
        };
        let stamp = Stamp::read(&payload)?;
        (stamp.topic == self.topic).then_some((place, stamp))
    }

    fn gap(&mut self, line: &str) {
        let reader = self.id;
        let event = match gap_of(line) {
            Some(gap) => Event::Told { reader, gap },
            None => Event::Wrong {
                reader,
                why: format!("airmail sub says: {line}"),
            },
        };
        self.history.note(event);
    }

    /// Checks, after its end, that it printed whole lines.
    fn finish(self) -> Option<Position> {
        if !self.printed.rest.is_empty() {
            self.history.note(Event::Wrong {
                reader: self.id,
                why: "SIGTERM ended airmail sub in the middle of a line".into(),
            });
        }
        self.position
    }
}

fn position_of(line: &str) -> Option<Position> {
    let json: Value = serde_json::from_str(line).ok()?;
    json["position"].as_str()?.parse().ok()
}

/// A gap as the command line tells it: the word, one or two numbers, and the reason.
fn gap_of(line: &str) -> Option<Hole> {
    let (_, rest) = line.split_once("gap")?;
    let numbers = rest.split(|c: char| !c.is_ascii_digit());
    let mut numbers = numbers.filter_map(|number| number.parse().ok());
    let reasons = [
        ("unused", GapReason::Unused),
        ("retention", GapReason::Retention),
        ("loss", GapReason::Loss),
    ];
    let reason = reasons.iter().find(|(word, _)| rest.contains(word))?.1;
    let first = numbers.next()?;
    Some(Hole {
        first,
        last: numbers.next().unwrap_or(u64::MAX),
        reason,
    })
}

#[test]
fn gaps_of_the_command_line_are_read() {
    let gap = |first, last, reason| {
        Some(Hole {
            first,
            last,
            reason,
        })
    };
    let told = gap_of("airmail: gap 101 to 150 (loss)");
    assert_eq!(told, gap(101, 150, GapReason::Loss));
    let told = gap_of("airmail: gap from 7 on (loss: the log began anew)");
    assert_eq!(told, gap(7, u64::MAX, GapReason::Loss));
    assert_eq!(gap_of("airmail: DISCONNECTED"), None);
}

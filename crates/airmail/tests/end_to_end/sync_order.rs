//! A trace of the node's system calls: between a message's arrival and its ack stands an fdatasync of
//! the file that the message was written to, and it has returned.

use airmail_testkit::node::{self, Node, airmail};
use airmail_testkit::scale;
use std::fs;
use std::process::Command;

const MARK: &str = "mark-of-the-traced-message";

#[test]
fn no_ack_leaves_before_the_fdatasync_has_returned() {
    let Some(mut strace) = scale::program("strace", "strace") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("trace");
    let calls = "trace=read,recvfrom,recvmsg,readv,write,writev,sendto,sendmsg,pwrite64,pwritev,\
                 pwritev2,fdatasync,fsync,openat";
    // -D: the node stays our child, so that it can be stopped by its id. -y: files by name, for a
    // node may write to one by another descriptor than it syncs it by.
    strace
        .args(["-D", "-f", "-y", "-xx", "-s", "100000", "-e", calls, "-o"])
        .arg(&trace);
    let serve = airmail();
    strace.arg(serve.get_program());
    strace.args([
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--http",
        "127.0.0.1:0",
        "--data",
    ]);
    strace.arg(directory.path().join("data"));
    if !may_trace() {
        scale::want("strace", "this process may not trace others");
    }
    let node = Node::spawn(strace);
    for number in 0..5 {
        node.run(&["pub", "traced", &format!("{MARK}-{number}")])
            .ok();
    }
    node.stop();
    node::wait_until("the trace's end", || {
        fs::read_to_string(&trace).is_ok_and(|text| text.contains("+++ exited"))
    });
    let text = fs::read_to_string(&trace).unwrap();
    let calls = Calls::read(&text);
    for number in 0..5 {
        calls.check(&format!("{MARK}-{number}"));
    }
}

pub(crate) fn may_trace() -> bool {
    Command::new("strace")
        .args(["-o", "/dev/null", "true"])
        .status()
        .is_ok_and(|s| s.success())
}

/// One system call that has returned, in the order of returning; sends in the order of beginning.
/// One that failed is left out.
#[derive(Debug)]
pub(crate) struct Call {
    name: String,
    /// File behind the descriptor, by strace: a file may have several names.
    file: String,
    bytes: Vec<u8>,
    /// Its writes are durable when they return.
    synced: bool,
}

#[derive(Debug)]
pub(crate) struct Calls(Vec<Call>);

impl Calls {
    /// Reads what strace wrote. A call that another thread's interrupts is in two parts: what is
    /// read and synced counts from its end, what is only sent or written from its beginning.
    pub(crate) fn read(text: &str) -> Calls {
        let mut calls = Vec::new();
        let mut begun: Vec<(&str, String)> = Vec::new();
        for line in text.lines() {
            let Some((thread, rest)) = line.split_once(' ') else {
                continue;
            };
            let rest = rest.trim_start();
            if let Some(first) = rest.strip_suffix("<unfinished ...>") {
                if counts_from_its_beginning(first) {
                    calls.extend(Call::read(first));
                } else {
                    begun.push((thread, first.trim_end().to_owned()));
                }
            } else if rest.starts_with("<... ") {
                let Some(at) = begun.iter().position(|(other, _)| *other == thread) else {
                    continue;
                };
                let (_, first) = begun.remove(at);
                let second = rest.split_once("resumed>").map_or("", |(_, second)| second);
                calls.extend(Call::read(&format!("{first}{second}")));
            } else {
                calls.extend(Call::read(rest));
            }
        }
        Calls(calls)
    }

    /// Whether a message that was acknowledged was written to some file, and that file was then
    /// synced, before the first ack after the message's last arrival.
    pub(crate) fn synced_before_its_ack(&self, mark: &str) -> bool {
        let holds = |call: &Call| find(&call.bytes, mark.as_bytes());
        let came = |call: &Call| is_read(&call.name) && holds(call);
        let Some(came) = self.0.iter().rposition(came) else {
            return false;
        };
        let socket = &self.0[came].file;
        let acks =
            |call: &Call| is_write(&call.name) && call.file == *socket && has_acks(&call.bytes);
        let rest = self.0[came..].iter();
        let Some(answer) = rest.clone().position(acks) else {
            return false;
        };
        let before = &self.0[..came + answer];
        let written = before.iter().enumerate();
        let mut written = written
            .filter(|(_, call)| is_write(&call.name) && call.file != *socket && holds(call))
            .map(|(at, call)| (at, &call.file));
        written.any(|(at, file)| {
            let mut rest = before[at..].iter();
            rest.any(|call| call.syncs(file))
        })
    }

    /// Follows one message: in by a socket, into a file, synced, and only then an answer.
    #[track_caller]
    fn check(&self, mark: &str) {
        let holds = |call: &Call| find(&call.bytes, mark.as_bytes());
        let came = self
            .0
            .iter()
            .position(|call| is_read(&call.name) && holds(call));
        let came = came.expect("the message came in");
        let socket = &self.0[came].file;
        let rest = &self.0[came + 1..];
        let written = rest
            .iter()
            .position(|call| is_write(&call.name) && holds(call));
        let written = written.expect("the message was written");
        let file = &rest[written].file;
        assert_ne!(file, socket);
        let synced = rest[written..]
            .iter()
            .position(|call| call.syncs(file))
            .expect("the file was synced");
        let answer = rest
            .iter()
            .position(|call| is_write(&call.name) && call.file == *socket && has_acks(&call.bytes))
            .expect("the message was acknowledged");
        assert!(
            answer > written + synced,
            "acknowledged before it was synced"
        );
    }
}

impl Call {
    /// `name(file, "\x..", …) = result`; nothing for what failed or is no call.
    fn read(text: &str) -> Option<Call> {
        let (name, arguments) = text.split_once('(')?;
        if arguments.contains(") = -1 ") {
            return None;
        }
        let digits = arguments.find(|letter: char| !letter.is_ascii_digit())?;
        let (descriptor, rest) = arguments.split_at(digits);
        let behind = rest.strip_prefix('<').and_then(|rest| rest.split_once('>'));
        let file = behind.map_or(descriptor, |(file, _)| file).to_owned();
        let mut bytes = Vec::new();
        for quoted in arguments.split('"').skip(1).step_by(2) {
            let pairs = quoted.split("\\x").skip(1);
            bytes.extend(pairs.filter_map(|pair| u8::from_str_radix(pair, 16).ok()));
        }
        Some(Call {
            name: name.to_owned(),
            file,
            bytes,
            synced: name == "fdatasync" || arguments.contains("RWF_DSYNC"),
        })
    }

    /// Whether it makes durable what was written to the file; of a call that writes, its own.
    fn syncs(&self, file: &str) -> bool {
        self.synced && self.file == file
    }
}

fn counts_from_its_beginning(text: &str) -> bool {
    let name = text.split('(').next();
    name.is_some_and(is_write) && !text.contains("RWF_DSYNC")
}

fn is_read(name: &str) -> bool {
    matches!(name, "read" | "readv" | "recvfrom" | "recvmsg")
}

fn is_write(name: &str) -> bool {
    matches!(
        name,
        "write" | "writev" | "sendto" | "sendmsg" | "pwrite64" | "pwritev" | "pwritev2"
    )
}

fn find(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// Whether what is sent has acks: an HTTP/2 frame of data, in it a gRPC message, in that a
/// `PublishResponse` with `acks`. A greeting, a ping or a window's update has none.
fn has_acks(mut bytes: &[u8]) -> bool {
    const HEAD: usize = 9;
    const PREFIX: usize = 5;
    const DATA: u8 = 0;
    const ACKS: u8 = 2 << 3 | 2;
    while bytes.len() >= HEAD {
        let length = u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]]) as usize;
        if bytes[3] == DATA && bytes.get(HEAD + PREFIX) == Some(&ACKS) {
            return true;
        }
        bytes = bytes.get(HEAD + length..).unwrap_or_default();
    }
    false
}

/// A trace in which one message comes in, is written, synced and acknowledged, in the order given.
fn trace(order: &[&str]) -> String {
    let hex = |bytes: &[u8]| {
        bytes
            .iter()
            .map(|byte| format!("\\x{byte:02x}"))
            .collect::<String>()
    };
    let mark = hex(MARK.as_bytes());
    let frame = [0, 0, 7, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 2, 0x12, 0];
    let mut lines = vec![format!(
        "7 recvfrom(9, \"{mark}\", 8192, 0, NULL, NULL) = 26"
    )];
    lines.extend(order.iter().map(|&step| match step {
        "write" => format!("8 pwrite64(5, \"{mark}\", 26, 0) = 26"),
        "both" => format!("8 pwritev2(5, [{{\"{mark}\", 26}}], 1, 0, RWF_DSYNC) = 26"),
        "sync" => "8 fdatasync(5) = 0".to_owned(),
        _ => format!(
            "7 sendto(9, \"{}\", 16, MSG_NOSIGNAL, NULL, 0) = 16",
            hex(&frame)
        ),
    }));
    lines.join("\n")
}

#[test]
fn an_ack_after_the_sync_is_right() {
    Calls::read(&trace(&["write", "sync", "ack"])).check(MARK);
}

#[test]
fn a_write_with_its_sync_is_one_that_is_synced_when_it_returns() {
    let sound = trace(&["both", "ack"]);
    Calls::read(&sound).check(MARK);
    assert!(Calls::read(&sound).synced_before_its_ack(MARK));
    assert!(!Calls::read(&trace(&["ack", "both"])).synced_before_its_ack(MARK));
    let without = sound.replace("RWF_DSYNC", "0");
    assert!(!Calls::read(&without).synced_before_its_ack(MARK));
    let failed = sound.replace("RWF_DSYNC) = 26", "RWF_DSYNC) = -1 EIO (INJECTED)");
    assert!(!Calls::read(&failed).synced_before_its_ack(MARK));
    let begun = sound.replace("RWF_DSYNC) = 26", "RWF_DSYNC <unfinished ...>");
    let late = format!("{begun}\n8 <... pwritev2 resumed>) = 26");
    assert!(!Calls::read(&late).synced_before_its_ack(MARK));
}

#[test]
fn an_ack_whose_sync_failed_is_found() {
    let sound = trace(&["write", "sync", "ack"]);
    assert!(Calls::read(&sound).synced_before_its_ack(MARK));
    assert!(!Calls::read(&trace(&["write", "ack", "sync"])).synced_before_its_ack(MARK));
    let by_name = sound
        .replace("pwrite64(5,", "pwrite64(6</data/seg>,")
        .replace("fdatasync(5)", "fdatasync(5</data/seg>)");
    assert!(Calls::read(&by_name).synced_before_its_ack(MARK));
    let of_another = by_name.replace("5</data/seg>", "5</data/ends>");
    assert!(!Calls::read(&of_another).synced_before_its_ack(MARK));
    let failed = sound.replace(
        "fdatasync(5) = 0",
        "fdatasync(5) = -1 EIO (Input/output error) (INJECTED)",
    );
    assert!(!Calls::read(&failed).synced_before_its_ack(MARK));
}

#[test]
#[should_panic(expected = "acknowledged before it was synced")]
fn an_ack_before_the_sync_is_found() {
    Calls::read(&trace(&["write", "ack", "sync"])).check(MARK);
}

#[test]
#[should_panic(expected = "acknowledged before it was synced")]
fn an_ack_while_the_sync_is_under_way_is_found() {
    let trace = trace(&["write", "sync", "ack"]);
    let begun = trace.replace("8 fdatasync(5) = 0", "8 fdatasync(5 <unfinished ...>");
    Calls::read(&format!("{begun}\n8 <... fdatasync resumed>) = 0")).check(MARK);
}

//! Commands that are ended from outside: their results are printed or stored, and the exit code
//! names the signal.

use airmail_testkit::node::{self, Node, airmail, wait_until};
use rustix::process::Signal;
use std::fs::File;
use std::io::Write as _;
use std::process::{Child, Command, Stdio};

fn numbered(lines: std::ops::Range<u32>) -> String {
    lines.map(|number| format!("{number}\n")).collect()
}

/// The same command, with the usual effect of a hang-up: the user who runs the tests may ignore it, as
/// `nohup` does, and commands go on ignoring it.
fn minding_hang_ups(command: &Command) -> Command {
    let mut minding = Command::new("env");
    minding.arg("--default-signal=HUP");
    minding.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => minding.env(name, value),
            None => minding.env_remove(name),
        };
    }
    minding
}

/// A node that was stopped and started between two hundreds of messages, so that a subscriber's state changes
/// behind the last of them.
fn with_two_hundred(data: &std::path::Path) -> Node {
    let node = Node::start(data);
    let publish = &mut node.airmail(&["pub", "t", "--lines"]);
    node::run(publish, numbered(0..100).as_bytes()).ok();
    assert!(node.stop().success());
    let node = Node::start(data);
    let publish = &mut node.airmail(&["pub", "t", "--lines"]);
    node::run(publish, numbered(100..200).as_bytes()).ok();
    node
}

#[test]
fn a_subscriber_prints_what_has_come_and_holds_nothing_back_however_it_is_ended() {
    let directory = tempfile::tempdir().unwrap();
    let node = with_two_hundred(&directory.path().join("data"));
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::INT, 0)] {
        let path = directory.path().join("printed");
        let subscribe = node.airmail(&["sub", "t", "--from", "earliest"]);
        let mut child = minding_hang_ups(&subscribe)
            .stdout(File::create(&path).unwrap())
            .spawn()
            .unwrap();
        let printed = || std::fs::read_to_string(&path).unwrap();
        wait_until("all that is stored is printed", || {
            printed() == numbered(0..200)
        });
        node::signal(&child, signal);
        assert_eq!(child.wait().unwrap().code(), Some(code), "{signal:?}");
        assert_eq!(printed(), numbered(0..200));
    }
}

#[test]
fn a_subscriber_whose_reader_has_stopped_reading_can_be_ended() {
    let directory = tempfile::tempdir().unwrap();
    let node = Node::start(directory.path());
    let lines = "a line of some length\n".repeat(20_000);
    let publish = &mut node.airmail(&["pub", "t", "--lines"]);
    node::run(publish, lines.as_bytes()).ok();
    // Nobody reads it, and it stays open.
    let (_reader, writer) = std::io::pipe().unwrap();
    let mut subscribe = node.airmail(&["sub", "t", "--from", "earliest"]);
    let mut child = subscribe.stdout(writer).spawn().unwrap();
    let mut ended = None;
    wait_until("the command ends", || {
        node::signal(&child, Signal::TERM);
        ended = child.try_wait().unwrap();
        ended.is_some()
    });
    let code = ended.unwrap();
    // By itself, or before it had begun to listen for signals.
    let killed = std::os::unix::process::ExitStatusExt::signal(&code);
    assert!(
        code.code() == Some(143) || killed == Some(Signal::TERM.as_raw()),
        "{code}"
    );
}

#[test]
fn a_hang_up_that_is_ignored_by_whoever_started_the_command_is_ignored() {
    let directory = tempfile::tempdir().unwrap();
    let node = Node::start(&directory.path().join("data"));
    let path = directory.path().join("printed");
    let mut shell = Command::new("sh");
    let subscribe = node.airmail(&["sub", "t", "--from", "earliest"]);
    shell
        .args(["-c", "trap '' HUP; exec \"$0\" \"$@\""])
        .arg(subscribe.get_program())
        .args(subscribe.get_args())
        .env("AIRMAIL_URL", format!("airmail://{}", node.grpc))
        .env("XDG_CONFIG_HOME", "/nonexistent")
        .stdout(File::create(&path).unwrap());
    let mut child = shell.spawn().unwrap();
    for message in ["before", "after"] {
        node.run(&["pub", "t", message]).ok();
        wait_until(message, || {
            std::fs::read_to_string(&path).unwrap().contains(message)
        });
        node::signal(&child, Signal::HUP);
    }
    node::signal(&child, Signal::TERM);
    assert_eq!(child.wait().unwrap().code(), Some(143));
}

fn publishing(node: &Node) -> (Child, std::process::ChildStdin) {
    let mut publish = minding_hang_ups(&node.airmail(&["pub", "t", "--lines"]));
    publish.stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut child = publish.spawn().unwrap();
    let stdin = child.stdin.take().unwrap();
    (child, stdin)
}

#[test]
fn a_publisher_of_lines_that_is_ended_says_how_many_are_stored() {
    for (signal, name, code) in [
        (Signal::INT, "SIGINT", 130),
        (Signal::TERM, "SIGTERM", 143),
        (Signal::HUP, "SIGHUP", 129),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let node = Node::start(directory.path());
        let (child, mut stdin) = publishing(&node);
        stdin.write_all(b"a\nb\nc\n").unwrap();
        wait_until("three are stored", || {
            node.run(&["history", "t"]).ok() == "a\nb\nc\n"
        });
        node::signal(&child, signal);
        let done = child.wait_with_output().unwrap();
        let said = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(code), "{said}");
        let expected = format!("airmail: ended by {name} after 3 messages stored\n");
        assert_eq!(said, expected);
        drop(stdin);
    }
}

#[test]
fn a_publisher_whose_node_is_gone_ends_at_the_second_signal_and_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let node = Node::start(directory.path());
    let (mut child, mut stdin) = publishing(&node);
    stdin.write_all(b"a\n").unwrap();
    wait_until("one is stored", || {
        node.run(&["history", "t"]).ok() == "a\n"
    });
    node.kill();
    stdin.write_all(b"b\n").unwrap();
    wait_until("it ends", || {
        node::signal(&child, Signal::INT);
        child.try_wait().unwrap().is_some()
    });
    let done = child.wait_with_output().unwrap();
    let said = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(130), "{said}");
    assert!(said.contains("after 1 messages stored"), "{said}");
    drop(stdin);
}

#[test]
fn history_that_is_ended_in_the_midst_cuts_no_line_and_tells_by_its_code() {
    let directory = tempfile::tempdir().unwrap();
    let node = Node::start(directory.path());
    let lines = "a line of some length\n".repeat(20_000);
    let publish = &mut node.airmail(&["pub", "t", "--lines"]);
    node::run(publish, lines.as_bytes()).ok();
    let (mut reader, writer) = std::io::pipe().unwrap();
    let mut history = airmail();
    history.args(["history", "t", "--url", &format!("airmail://{}", node.grpc)]);
    let mut child = history.stdout(writer).spawn().unwrap();
    drop(history);
    // It prints, so it listens to signals; and it cannot be done, since nobody reads on.
    let mut some = [0; 10];
    std::io::Read::read_exact(&mut reader, &mut some).unwrap();
    node::signal(&child, Signal::TERM);
    let mut rest = Vec::new();
    std::io::Read::read_to_end(&mut reader, &mut rest).unwrap();
    let code = child.wait().unwrap().code();
    assert_eq!(rest.last(), Some(&b'\n'), "no line is cut");
    // It may have been done before it saw the signal.
    let is_all = some.len() + rest.len() == lines.len();
    assert!(code == Some(143) || (code == Some(0) && is_all), "{code:?}");
}

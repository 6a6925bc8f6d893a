//! A PostgreSQL server for tests: a fresh data directory in the temporary directory, on loopback,
//! on a port of its own, run by an unprivileged user (as root it refuses to run), with its own defaults.
//!
//! A shell stands between: it stops the server and removes the directory when the pipe to it
//! closes, however this process ends.

use crate::waiting::waiting;
use airmail_mailbox::postgres::{Options, PostgresStore};
use parking_lot::{Mutex, MutexGuard};
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Runs as the unprivileged user. `$1`: programs. `$2`: data. `$3`: port. Each line that is read
/// is a command; the end of the pipe ends the server.
const KEEPER: &str = r#"
set -eu
"$1/initdb" -D "$2/data" -U airmail -A trust --no-sync --no-instructions >"$2/initdb.log"
start() {
    "$1/postgres" -D "$2/data" -p "$3" -k "$2" -c listen_addresses=127.0.0.1 >>"$2/server.log" 2>&1 &
    server=$!
    until "$1/pg_isready" -q -h 127.0.0.1 -p "$3" -U airmail -d postgres; do kill -0 $server || exit 1; sleep 0.05; done
}
start "$@"
echo ready
while read -r command; do
    case $command in
        kill) # What a power cut leaves: no server process goes on.
            children=$(cat /proc/$server/task/*/children)
            kill -9 $server $children || true
            wait $server || true
            while kill -0 $children 2>/dev/null; do sleep 0.01; done ;;
        start) start "$@" ;;
    esac
    echo done
done
kill -INT $server 2>/dev/null && wait $server || true
rm -rf "$2"
"#;

/// A server that runs.
#[derive(Debug)]
pub struct Server {
    keeper: Child,
    told: BufReader<std::process::ChildStdout>,
    port: u16,
}

impl Server {
    /// Starts a new one.
    pub fn start() -> Server {
        let directory = tempfile::Builder::new()
            .prefix("airmail-postgres-")
            .tempdir()
            .unwrap()
            .keep();
        let port = lasting_port();
        let mut keeper = unprivileged(&directory);
        keeper.args(["sh", "-c", KEEPER, "keeper"]).arg(programs());
        keeper.arg(&directory).arg(port.to_string());
        keeper.current_dir(&directory);
        keeper.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut keeper = keeper.spawn().unwrap();
        let told = BufReader::new(keeper.stdout.take().unwrap());
        let mut server = Server { keeper, told, port };
        assert_eq!(server.hear(), "ready", "PostgreSQL does not start");
        server
    }

    /// Kills every process of it at once.
    pub fn kill(&mut self) {
        self.tell("kill\n");
    }

    /// Starts it again on the same data and port.
    pub fn start_again(&mut self) {
        self.tell("start\n");
    }

    /// The URL of a database.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://airmail@127.0.0.1:{}/{database}", self.port)
    }

    /// Makes a new, empty database; its URL.
    pub fn new_database(&self) -> String {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("test_{}", COUNT.fetch_add(1, Ordering::Relaxed));
        self.psql("postgres", &format!("CREATE DATABASE {name}"));
        self.url(&name)
    }

    /// Output of `psql` for a statement, without heads and blanks. The statement must succeed.
    pub fn psql(&self, database: &str, sql: &str) -> String {
        psql(&self.url(database), sql)
    }

    fn tell(&mut self, command: &str) {
        use std::io::Write as _;
        let stdin = self.keeper.stdin.as_mut().unwrap();
        stdin.write_all(command.as_bytes()).unwrap();
        assert_eq!(self.hear(), "done");
    }

    fn hear(&mut self) -> String {
        let _waiting = waiting("a database server to start, or to be killed");
        let mut line = String::new();
        self.told.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _waiting = waiting("the end of a database server");
        let _ = self.keeper.wait();
    }
}

/// A port that a server can have again after its end. Not one that the system chooses: those it gives to the
/// next caller, and a node that keeps trying could be connected to itself.
fn lasting_port() -> u16 {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    loop {
        let given = GIVEN.fetch_add(1, Ordering::Relaxed);
        let place = std::process::id().wrapping_mul(97).wrapping_add(given) % 10_000;
        let port = 10_000 + u16::try_from(place).unwrap();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Output of `psql` for a statement on a database.
pub fn psql(url: &str, sql: &str) -> String {
    let _waiting = waiting(format!("psql: {sql}"));
    let done = Command::new(programs().join("psql"))
        .args([
            "-X",
            "-q",
            "-A",
            "-t",
            "-v",
            "ON_ERROR_STOP=1",
            "-c",
            sql,
            url,
        ])
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{sql}: {told}");
    String::from_utf8_lossy(&done.stdout).trim_end().to_owned()
}

/// Somebody at `psql`, in the middle of a transaction. It is rolled back when this is dropped.
#[derive(Debug)]
pub struct Holder {
    psql: Child,
    told: BufReader<std::process::ChildStdout>,
}

impl Holder {
    /// Begins a transaction and runs `sql` in it, such as one that takes locks.
    pub fn new(url: &str, sql: &str) -> Holder {
        let mut psql = Command::new(programs().join("psql"));
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", url]);
        psql.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut psql = psql.spawn().unwrap();
        let told = BufReader::new(psql.stdout.take().unwrap());
        let mut holder = Holder { psql, told };
        holder.tell(&format!("BEGIN; {sql};"));
        holder
    }

    /// Ends the transaction, and undoes it.
    pub fn release(mut self) {
        self.tell("ROLLBACK;");
    }

    /// Ends the transaction, and keeps what it did.
    pub fn commit(mut self) {
        self.tell("COMMIT;");
    }

    fn tell(&mut self, sql: &str) {
        use std::io::Write as _;
        let stdin = self.psql.stdin.as_mut().unwrap();
        writeln!(stdin, "{sql} SELECT 'done';").unwrap();
        let mut line = String::new();
        while line.trim_end() != "done" {
            line.clear();
            assert!(self.told.read_line(&mut line).unwrap() > 0, "psql ended");
        }
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        drop(self.psql.stdin.take());
        let _ = self.psql.wait();
    }
}

/// Locks every table of the mailboxes.
pub const LOCK_ALL: &str = "LOCK TABLE airmail.account, airmail.queue, airmail.message, \
     airmail.ready, airmail.later IN ACCESS EXCLUSIVE MODE";

/// The server that the tests of one process have in common.
pub fn shared_server() -> MutexGuard<'static, Server> {
    static SERVER: OnceLock<Mutex<Server>> = OnceLock::new();
    SERVER.get_or_init(|| Mutex::new(Server::start())).lock()
}

/// A store on a new database of the common server. Must be called within a runtime.
pub fn new_store() -> (PostgresStore, String) {
    let url = shared_server().new_database();
    let options = Options {
        connections: 3,
        // No claim depends on how fast the server is there.
        patience_ms: 600_000,
        ..Options::new(&url)
    };
    (PostgresStore::start(options).unwrap(), url)
}

/// Where PostgreSQL's programs are: in the path, or where Debian puts the newest.
#[expect(
    clippy::disallowed_methods,
    reason = "finds the programs as a shell does"
)]
pub fn programs() -> PathBuf {
    let in_path = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .filter_map(|directory| directory.join("initdb").canonicalize().ok())
        .find_map(|program| Some(program.parent()?.to_path_buf()));
    let mut found: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .filter(|path| path.join("initdb").exists())
        .collect();
    found.sort();
    let found = in_path.or(found.pop());
    found.expect("PostgreSQL's server is not installed: `apt-get install postgresql`")
}

/// A command that runs what follows as a user that PostgreSQL accepts.
fn unprivileged(directory: &Path) -> Command {
    let root = std::fs::metadata("/proc/self").is_ok_and(|of_us| {
        use std::os::unix::fs::MetadataExt as _;
        of_us.uid() == 0
    });
    if !root {
        let mut command = Command::new("env");
        command.arg("--");
        return command;
    }
    let nobody = 65534;
    std::os::unix::fs::chown(directory, Some(nobody), Some(nobody)).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]);
    command
}

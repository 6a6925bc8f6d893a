//! Identity of this node for others of its cluster, and the secret by which it shows it.

use crate::config::Config;
use airmail_model::{Error, ErrorCode, NodeId, Now};
use airmail_wire::handshake::{
    CHALLENGE_BYTES, Credentials, Node, SECRET_BYTES_MIN, Secret, VERSIONS,
};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;

/// Identity of a node. Credentials are made of it, with a challenge for each connection.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    node: Node,
    secret: Option<Secret>,
}

impl Identity {
    /// This node's, with its cluster and number: those of its data, or a cluster of 0 and a random number.
    pub(crate) fn new(
        config: &Config,
        secret: Option<Secret>,
        (cluster, node): (u64, NodeId),
        now: Now,
    ) -> Identity {
        Identity {
            node: Node {
                cluster,
                name: config.name.clone(),
                node,
                boot: u64::try_from(now.wall.0).unwrap_or(0),
            },
            secret,
        }
    }

    /// The node.
    pub(crate) fn node(&self) -> &Node {
        &self.node
    }

    /// The secret of its cluster, if there is one.
    pub(crate) fn secret(&self) -> Option<&Secret> {
        self.secret.as_ref()
    }

    /// The same node, of this cluster.
    pub(crate) fn of_cluster(mut self, cluster: u64) -> Identity {
        self.node.cluster = cluster;
        self
    }

    /// Credentials for one handshake.
    ///
    /// # Errors
    /// The system has no random bytes.
    pub(super) fn credentials(&self) -> io::Result<Credentials> {
        let mut challenge = [0; CHALLENGE_BYTES];
        getrandom::fill(&mut challenge)?;
        Ok(Credentials {
            node: self.node.clone(),
            secret: self.secret.clone(),
            versions: VERSIONS,
            challenge,
        })
    }
}

/// The secret of the settings' file, which its owner alone may read.
///
/// # Errors
/// `INVALID_ARGUMENT` for one that cannot be read, is short, or may be read by others.
pub(crate) fn secret(config: &Config) -> Result<Option<Secret>, Error> {
    let path = &config.cluster.secret_file;
    if path.as_os_str().is_empty() {
        return Ok(None);
    }
    let wrong = |limit: String| {
        let error = Error::new(ErrorCode::InvalidArgument).field("cluster.secret_file");
        error.value(path.display()).limit(limit)
    };
    let read = || -> io::Result<_> {
        let metadata = fs::metadata(path)?;
        Ok((metadata, fs::read(path)?))
    };
    let (metadata, bytes) =
        read().map_err(|error| wrong(format!("a file that can be read: {error}")))?;
    let mode = metadata.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(wrong(format!(
            "a file that its owner alone may read (chmod 600), and its mode is {mode:o}"
        )));
    }
    // An editor ends a file with a line's end, which is no part of the secret.
    let bytes = bytes.trim_ascii_end().to_vec();
    let length = bytes.len();
    let secret = Secret::new(bytes).ok_or_else(|| {
        wrong(format!(
            "a file of at least {SECRET_BYTES_MIN} bytes, and it has {length}"
        ))
    });
    secret.map(Some)
}

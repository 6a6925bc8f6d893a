//! gRPC's framing, for the two streams that carry batches.
//!
//! tonic's codec copies every message into a buffer of its own, once on the way in and once on the
//! way out. Publish and Subscribe do without: [`requests`] takes a message out of the HTTP/2 frame
//! in which it came, and [`replies`] hands a batch to the connection as the memory in which it is
//! stored, shared by all that it goes to. On the wire it is plain gRPC. Every other call is tonic's.

pub(crate) mod replies;
pub(crate) mod requests;

//! Bugs that the simulator plants, to see that it finds them. In no build but its own.

/// A bug to plant. Each is a mistake that is easily made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// Messages that come late of an earlier connection are taken for the present one's, in which readers are
    /// numbered anew.
    GenerationIgnored,
    /// A reader is resumed one number further than it stands.
    ResumeOffByOne,
    /// A range is taken whatever was before it.
    PreviousIgnored,
    /// The refusal of one attempt at an append is taken as its fate, though an earlier attempt may have stored it.
    RefusalTaken,
    /// A resumed reader is given its credit, and then what is held back of it once more.
    CreditTwice,
    /// After a cut the logs are not opened again.
    OpensForgotten,
    /// After a cut the readers are not resumed.
    ReaderForgotten,
    /// After a cut it is believed that the far end still knows what is wanted.
    WantsKept,
    /// A standby is believed to know what is wanted, and hears nothing of it.
    StandbyNotTold,
    /// The refusal of an append to a log that has moved is taken as its fate, though the tower before may have stored it.
    MoveUndoubted,
    /// An active tower that says nothing is believed to serve, because a standby answers.
    StandbyCounts,
}

/// A bug to plant in a tree's nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeBug {
    /// The path is looked at when a parent tells its first heartbeat, and nobody leaves it later, whatever it tells.
    PathCheckedWhenAttaching,
    /// The root tells its count once.
    CountNotRenewed,
    /// A child that has left is still named to those for whom there is no room.
    RedirectToOneThatLeft,
}

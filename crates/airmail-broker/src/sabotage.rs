//! Bugs that the simulator plants, to see that it finds them. In no build but its own.

/// A bug to plant. Each is a mistake that is easily made.
///
/// [`FollowingKept`](Bug::FollowingKept), [`MemberKept`](Bug::MemberKept) and
/// [`NumberFreed`](Bug::NumberFreed) break nothing at first but the state of one core, of the gateway, the tower
/// or the catalog: its check is to find them at the step that does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A subscription that is taken off the tail is told to stand one number further.
    DetachOffByOne,
    /// Deliveries to late subscribers are not taken off their session's credit.
    LateNotCharged,
    /// A part of the credit that a client gives back is lost.
    CreditLost,
    /// A position from beyond the end is taken silently: it waits until the log gets there.
    PositionBeyondEnd,
    /// A subscription for which the tower does not read any more still counts against its session.
    FollowingKept,
    /// A member that has left the tower is still found by its id.
    MemberKept,
    /// The number given last is counted from the namespaces that there are: a deletion frees it.
    NumberFreed,
    /// Readers that give nothing for long keep their places all the same.
    SilentReaderCounts,
    /// A subscription goes live before the tower has said that it gives its topic.
    LiveBeforeEffective,
    /// A topic counts as wanted after its drop was sent.
    WantedUntilDropped,
    /// Where a log ends is answered from what this shard has seen of it.
    EndNotAsked,
    /// An own command that is void ends all commands.
    VoidEndsCommands,
    /// Provisions of a command are withdrawn though the command may be in log 0.
    UnknownWithdrawn,
    /// A deleted namespace's logs are deleted without their provisions.
    ProvisionsForgotten,
    /// A namespace that is not known is refused at once.
    UnknownRefused,
    /// The first batch at a time, or after it, ends what was asked for up to there, though clocks may go back.
    FirstTimeEnds,
    /// An earlier question that is under way, where a log ends, serves whoever asks later, too.
    EarlierEndTaken,
    /// A log ends where it does when its seal is durable, though what was taken before is under way.
    EndBeforeSealed,
    /// A retry with the map before a move is not asked of the log before: it is refused as never stored there.
    SealedNotAsked,
    /// A log of an earlier map is called empty while something is left in it.
    RetiredUnemptied,
    /// Messages expire by the gateway's own clock.
    OwnClock,
    /// The clock of a log is taken for what it was when it was asked for.
    ClockFromBelow,
    /// A part of a batch that was made for one client serves the next one that wants the same topics, whatever its roles.
    PartForOtherRoles,
    /// A late subscription is given what is for other roles.
    LateForbidden,
    /// Records of a topic that one filter does not match are left out for every other one, too.
    UnmatchedOfTopic,
    /// A late subscription is given what its filter does not match.
    LateUnfiltered,
    /// A selection at the tail is given all topics of each batch that holds one of its own.
    SelectionOfAll,
    /// A late selection is given topics that it does not select.
    LateUnselected,
    /// A selection goes live where the tower gives only the topics that others want.
    SelectionOfWanted,
    /// A delivery names one subscription for each message, whatever number it is for.
    NamedOnce,
    /// The first number that is left to the storage is not read for the turns.
    TurnsOffByOne,
    /// Subscriptions from before there was lane high begin in it with the latest.
    HighFromLatest,
    /// A subscription's part in a lane goes on, and is told, as soon as it is placed, whether or not the other is.
    LanesToldApart,
    /// Publishes are taken in the log after a move while the one before is not known to have ended.
    TakenBeforeSealed,
}

//! A transaction snapshot, used as a set of transactions.

use std::fmt;
use std::str::FromStr;

use crate::id::Xid;

/// Which transactions had finished at one moment, read as a set: `sees(x)` = `x < xmax` and `x` is not running.
///
/// The text form is that of PostgreSQL's `pg_snapshot`, `xmin:xmax:a,b,c`. `xmin` is derived when printing (the first
/// running transaction, or `xmax`) and only checked when parsing, because it adds nothing to the set.
///
/// ```
/// # use awa_core::frontier::Snapshot;
/// # use awa_core::id::Xid;
/// let snapshot: Snapshot = "21660:21662:".parse().unwrap();
/// assert!(snapshot.sees(Xid(21660)));
/// let claimer = Snapshot::of(snapshot.xmax(), snapshot.running().iter().copied(), Some(Xid(21660)));
/// assert!(!claimer.sees(Xid(21660)), "the claimer's own transaction has not finished");
/// assert_eq!(claimer.to_string(), "21660:21662:21660");
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Snapshot {
    xmax: Xid,
    /// Ascending, without repetition, all below `xmax`.
    running: Vec<Xid>,
}

/// Text that is not a snapshot as PostgreSQL prints it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("snapshot text {text:?} refused: {problem}; expected xmin:xmax:running,running,...")]
pub struct BadSnapshot {
    text: String,
    problem: &'static str,
}

impl Snapshot {
    /// The snapshot that sees nothing. Its text form, `1:1:`, is the smallest that PostgreSQL accepts; number 0 is
    /// never a transaction.
    pub const fn empty() -> Self {
        Self { xmax: Xid(1), running: Vec::new() }
    }

    /// The set for a snapshot taken with `xmax` and `running` (in any order), inside the transaction `own`.
    ///
    /// A database leaves the caller's own transaction out of the running list of its snapshots, so that it looks
    /// finished there. A transaction that claims and then appends to the same lane would store a frontier that has
    /// passed its own rows, and nobody would ever take them. Every snapshot that is stored therefore counts `own` as
    /// running, with the consequence that a transaction never claims its own rows. `None` means that the transaction
    /// has no number yet; one it gets later is at least `xmax` and needs no care.
    ///
    /// Entries at or above `xmax` are dropped: they are outside the set already.
    pub fn of(xmax: Xid, running: impl IntoIterator<Item = Xid>, own: Option<Xid>) -> Self {
        let mut running: Vec<Xid> = running.into_iter().chain(own).filter(|xid| *xid < xmax).collect();
        running.sort_unstable();
        running.dedup();
        Self { xmax, running }
    }

    /// Whether `xid` had finished.
    pub fn sees(&self, xid: Xid) -> bool {
        xid < self.xmax && !self.is_running(xid)
    }

    /// Whether `xid` is in the running list.
    pub fn is_running(&self, xid: Xid) -> bool {
        self.running.binary_search(&xid).is_ok()
    }

    /// The first transaction that every member of the running list and every later one is at or above: all below it
    /// had finished.
    pub fn xmin(&self) -> Xid {
        self.running.first().copied().unwrap_or(self.xmax)
    }

    /// The first transaction that had not begun to write.
    pub const fn xmax(&self) -> Xid {
        self.xmax
    }

    /// The transactions below [`Self::xmax`] that had not finished, ascending.
    pub fn running(&self) -> &[Xid] {
        &self.running
    }
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:", self.xmin(), self.xmax)?;
        for (position, xid) in self.running.iter().enumerate() {
            let comma = if position == 0 { "" } else { "," };
            write!(f, "{comma}{xid}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Snapshot({self})")
    }
}

impl FromStr for Snapshot {
    type Err = BadSnapshot;

    fn from_str(text: &str) -> Result<Self, BadSnapshot> {
        parse(text).map_err(|problem| BadSnapshot { text: text.to_owned(), problem })
    }
}

fn parse(text: &str) -> Result<Snapshot, &'static str> {
    let mut fields = text.split(':');
    let (Some(xmin), Some(xmax), Some(list), None) = (fields.next(), fields.next(), fields.next(), fields.next())
    else {
        return Err("it does not have three fields");
    };
    let (xmin, xmax) = (parse_xid(xmin)?, parse_xid(xmax)?);
    if xmax < xmin {
        return Err("xmax is below xmin");
    }
    let mut running: Vec<Xid> = Vec::new();
    for item in list.split(',').filter(|_| !list.is_empty()) {
        let xid = parse_xid(item)?;
        if xid < xmin || xid >= xmax {
            return Err("a running transaction is outside xmin..xmax");
        }
        match running.last() {
            Some(last) if xid < *last => return Err("the running transactions are not in order"),
            Some(last) if xid == *last => {} // PostgreSQL passes over repetitions as well
            _ => running.push(xid),
        }
    }
    Ok(Snapshot { xmax, running })
}

fn parse_xid(text: &str) -> Result<Xid, &'static str> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("a transaction is not a number");
    }
    match text.parse() {
        Ok(0) => Err("0 is not a transaction"),
        Ok(xid) => Ok(Xid(xid)),
        Err(_) => Err("a transaction is not a 64-bit number"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(text: &str) -> Snapshot {
        text.parse().unwrap()
    }

    #[test]
    fn the_set_is_what_is_below_xmax_and_not_running() {
        let s = snapshot("5:9:5,7");
        let seen: Vec<u64> = (1..12).filter(|x| s.sees(Xid(*x))).collect();
        assert_eq!(seen, [1, 2, 3, 4, 6, 8]);
        assert!(!Snapshot::empty().sees(Xid(1)));
    }

    #[test]
    fn text_that_postgres_prints_comes_back_unchanged() {
        for text in [
            "1:1:",
            "9:9:",
            "22666:22669:22666,22667",
            "10:20:10,14,15,19",
            "18446744073709551614:18446744073709551615:18446744073709551614",
        ] {
            assert_eq!(snapshot(text).to_string(), text);
        }
    }

    #[test]
    fn an_xmin_below_the_running_list_is_accepted_and_adds_nothing() {
        assert_eq!(snapshot("3:9:5,5,7"), snapshot("5:9:5,7"));
    }

    #[test]
    fn broken_text_is_refused_with_the_reason() {
        for (text, problem) in [
            ("", "three fields"),
            ("1:2", "three fields"),
            ("1:2:1:", "three fields"),
            (":2:", "64-bit"),
            ("+1:2:", "not a number"),
            ("1:2:x", "not a number"),
            ("1:2:1,", "64-bit"),
            ("0:2:", "0 is not"),
            ("31:12:", "below xmin"),
            ("1:5:5", "outside"),
            ("3:5:2", "outside"),
            ("1:9:5,4", "not in order"),
            ("1:18446744073709551616:", "64-bit"),
        ] {
            let refusal = text.parse::<Snapshot>().unwrap_err().to_string();
            assert!(refusal.contains(problem), "{text:?} gave {refusal}");
        }
    }

    #[test]
    fn the_own_transaction_counts_as_running() {
        let raw = snapshot("22666:22669:22666");
        let own = |own| Snapshot::of(raw.xmax(), raw.running().iter().copied(), own).to_string();
        assert_eq!(own(Some(Xid(22667))), "22666:22669:22666,22667");
        assert_eq!(own(Some(Xid(22666))), "22666:22669:22666", "an own number that is listed already is listed once");
        assert_eq!(own(Some(Xid(22669))), "22666:22669:22666", "an own number from xmax on is outside already");
        assert_eq!(own(None), "22666:22669:22666");
    }
}

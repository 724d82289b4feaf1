//! The model that stateright explores: actors with scripts, of which any may act next, and any may crash.

use std::collections::BTreeSet;
use std::sync::Mutex;

use stateright::{Model, Property};

use super::actors::{Op, Script, Stepped};
use super::database::Who;
use super::heal;
use super::laws::{Law, all_is_over};
use super::world::{Reach, Rules, World};

/// An actor: what it does, one operation after the other.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Plan {
    /// Its operations.
    pub(crate) ops: Vec<Op>,
    /// Whether its beats reach the database.
    pub(crate) is_beating: bool,
}

/// A world to explore.
#[derive(Debug)]
pub(crate) struct Setting {
    pub(crate) rules: Rules,
    pub(crate) queue_slots: u8,
    pub(crate) claim_slots: u8,
    /// Operations that were carried out before, one after the other, each by one of the actors.
    pub(crate) before: Vec<(Who, Op)>,
    pub(crate) actors: Vec<Plan>,
    /// How many actors may crash.
    pub(crate) crashes: u8,
    /// What was reached in any world so far.
    pub(crate) reached: Mutex<BTreeSet<Reach>>,
}

/// An actor in a state.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Actor {
    /// The next operation.
    pub(crate) next: usize,
    /// Where the current one stands.
    pub(crate) script: Option<Script>,
    pub(crate) has_crashed: bool,
}

/// A state of a world with its actors.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct State {
    pub(crate) world: World,
    pub(crate) actors: Vec<Actor>,
    pub(crate) crashes_left: u8,
    /// The actors are done, and maintenance and a worker have run fairly since; and whether everything is over.
    pub(crate) healed: Option<bool>,
}

/// What happens next.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Action {
    /// An actor carries out its next statement.
    Step(Who),
    /// An actor is gone for ever, and its transaction with it.
    Crash(Who),
    /// An actor that waits gives up: its time-out is over.
    GiveUp(Who),
    /// Everybody is done: maintenance and a worker that live run until nothing changes.
    Heal,
}

impl Setting {
    /// The script of an actor where it stands, or at the beginning of its next operation.
    fn script(&self, actor: &Actor, who: Who) -> Option<Script> {
        actor.script.clone().or_else(|| self.actors[usize::from(who.0)].ops.get(actor.next).map(Script::of))
    }

    /// The state before anybody acts.
    pub(crate) fn start(&self) -> State {
        let mut world = World::new(self.queue_slots, self.claim_slots);
        for (plan, who) in self.actors.iter().zip(0..) {
            world.start(Who(who), plan.is_beating);
        }
        for (who, op) in &self.before {
            let reached = heal::carry_out(&mut world, *who, op, &self.rules);
            self.reached.lock().unwrap().extend(reached);
        }
        let actor = Actor { next: 0, script: None, has_crashed: false };
        State { world, actors: vec![actor; self.actors.len()], crashes_left: self.crashes, healed: None }
    }

    /// Whether an actor has nothing left to do.
    pub(crate) fn is_done(&self, actor: &Actor, who: Who) -> bool {
        actor.has_crashed || self.script(actor, who).is_none()
    }

    fn step(&self, state: &State, who: Who) -> Option<State> {
        let script = self.script(&state.actors[usize::from(who.0)], who)?;
        let mut next = state.clone();
        let actor = &mut next.actors[usize::from(who.0)];
        match script.clone().step(&mut next.world, who, &self.rules) {
            Stepped::On(script, reached) => {
                self.reached.lock().unwrap().extend(reached);
                let is_over = script.is_none();
                actor.script = script.map(|script| *script);
                actor.next += usize::from(is_over);
                Some(next)
            }
            Stepped::Waiting(snapshot) => {
                if state.waits(who) {
                    return None;
                }
                let mut next = state.clone();
                next.world.transactions.begin(who, script.isolation()).waiting = Some(snapshot);
                next.actors[usize::from(who.0)].script = Some(script);
                Some(next)
            }
        }
    }

    fn crash(&self, state: &State, who: Who) -> State {
        let mut next = state.clone();
        let actor = &mut next.actors[usize::from(who.0)];
        *actor = Actor { next: self.actors[usize::from(who.0)].ops.len(), script: None, has_crashed: true };
        next.world.crash(who);
        next.crashes_left -= 1;
        next
    }

    fn give_up(&self, state: &State, who: Who) -> State {
        let mut next = state.clone();
        let actor = &mut next.actors[usize::from(who.0)];
        let script = self.script(actor, who).expect("who waits is doing something");
        actor.script = script.give_up(&mut next.world, who);
        actor.next += usize::from(actor.script.is_none());
        next
    }

    fn heal(&self, state: &State) -> State {
        let mut next = state.clone();
        let reached = heal::heal(&mut next.world, &self.rules);
        self.reached.lock().unwrap().extend(reached);
        next.healed = Some(all_is_over(&next.world));
        next
    }
}

impl State {
    /// Whether a law holds so far.
    pub(crate) fn keeps(&self, law: Law) -> bool {
        !self.world.ghost().broken.contains(&law)
    }

    fn waits(&self, who: Who) -> bool {
        self.world.transactions.of(who).is_some_and(|transaction| transaction.waiting.is_some())
    }
}

impl Model for Setting {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![self.start()]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.healed.is_some() || !state.world.ghost().broken.is_empty() {
            return;
        }
        let mut is_over = true;
        for (actor, who) in state.actors.iter().zip((0..).map(Who)) {
            if self.is_done(actor, who) {
                if !actor.has_crashed && state.world.hands.contains_key(&who) && state.crashes_left > 0 {
                    actions.push(Action::Crash(who));
                }
                continue;
            }
            is_over = false;
            actions.push(Action::Step(who));
            let can_give_up = self.script(actor, who).is_some_and(|script| script.has_timeout());
            if state.waits(who) && can_give_up {
                actions.push(Action::GiveUp(who));
            }
            if state.crashes_left > 0 {
                actions.push(Action::Crash(who));
            }
        }
        if is_over {
            actions.push(Action::Heal);
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        match action {
            Action::Step(who) => self.step(state, who),
            Action::Crash(who) => Some(self.crash(state, who)),
            Action::GiveUp(who) => Some(self.give_up(state, who)),
            Action::Heal => Some(self.heal(state)),
        }
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("I1 one place", |_, state: &State| state.keeps(Law::OnePlace)),
            Property::always("I2 one attempt", |_, state: &State| state.keeps(Law::OneAttempt)),
            Property::always("I3 ends once", |_, state: &State| state.keeps(Law::EndsOnce)),
            Property::always("I4 true answer", |_, state: &State| state.keeps(Law::TrueAnswer)),
            Property::always("I5 no truncation over life", |_, state: &State| state.keeps(Law::NoTruncationOverLife)),
            Property::always("I8 claimable", |_, state: &State| state.keeps(Law::Claimable)),
            Property::always("I9 order", |_, state: &State| state.keeps(Law::Order)),
            Property::always("final cancel", |_, state: &State| state.keeps(Law::FinalCancel)),
            Property::always("living worker kept", |_, state: &State| state.keeps(Law::LivingWorker)),
            Property::always("held claim revisited", |_, state: &State| state.keeps(Law::HeldClaim)),
            Property::eventually(ENDS, |_, state: &State| {
                state.healed == Some(true) || !state.world.ghost().broken.is_empty()
            }),
        ]
    }
}

/// The name of the property that every job ends and every slot is freed.
pub(crate) const ENDS: &str = "every job ends";

//! Syntax tree of shell scripts.

use crate::import::place::Place;
use std::rc::Rc;

/// A command or a compound of commands.
#[derive(Debug, Clone)]
pub(crate) enum Cmd {
    Simple(Simple),
    Pipe(Vec<Cmd>),
    Not(Box<Cmd>),
    And(Box<Cmd>, Box<Cmd>),
    Or(Box<Cmd>, Box<Cmd>),
    If { arms: Vec<(Vec<Cmd>, Vec<Cmd>)>, otherwise: Vec<Cmd> },
    For { var: String, words: Option<Vec<Word>>, body: Vec<Cmd> },
    ForArith { init: String, cond: String, step: String, body: Vec<Cmd> },
    While { cond: Vec<Cmd>, body: Vec<Cmd>, until: bool },
    Case { word: Word, arms: Vec<(Vec<Word>, Vec<Cmd>)> },
    Func { name: String, body: Rc<Vec<Cmd>> },
    Arith(String, Place),
    Test(Vec<Tok>),
    Group { body: Vec<Cmd>, redirs: Vec<Redir> },
}

/// A simple command.
#[derive(Debug, Clone, Default)]
pub(crate) struct Simple {
    pub(crate) assigns: Vec<Assign>,
    pub(crate) words: Vec<Arg>,
    pub(crate) redirs: Vec<Redir>,
    pub(crate) line: Place,
}

/// A word of a command, or an assignment after `declare`, `export` and similar commands.
#[derive(Debug, Clone)]
pub(crate) enum Arg {
    Word(Word),
    Assign(Assign),
}

/// `NAME=value`, `NAME+=value`, `NAME[i]=value`, `NAME=( … )`.
#[derive(Debug, Clone)]
pub(crate) struct Assign {
    pub(crate) name: String,
    pub(crate) index: Option<Word>,
    pub(crate) append: bool,
    pub(crate) value: AssignValue,
}

#[derive(Debug, Clone)]
pub(crate) enum AssignValue {
    Word(Word),
    Array(Vec<(Option<Word>, Word)>),
}

/// A redirection that affects the import.
#[derive(Debug, Clone)]
pub(crate) enum Redir {
    /// Redirects standard output to a file; true to append.
    Out(Word, bool),
    /// A here-document or a here-string.
    Here(Word),
    /// Redirects standard input from a file or from the output of a command.
    In(Word),
}

/// A token of `[[ … ]]`.
#[derive(Debug, Clone)]
pub(crate) enum Tok {
    Word(Word),
    Op(&'static str),
}

/// A word before expansion.
#[derive(Debug, Clone, Default)]
pub(crate) struct Word {
    pub(crate) parts: Vec<Part>,
    pub(crate) line: Place,
}

#[derive(Debug, Clone)]
pub(crate) enum Part {
    Lit { text: String, line: Place, quoted: bool },
    Param { param: Box<Param>, line: Place, quoted: bool },
    Cmd { script: String, line: Place, quoted: bool },
    Arith { expr: Word, line: Place, quoted: bool },
}

/// `${…}`.
#[derive(Debug, Clone)]
pub(crate) struct Param {
    pub(crate) name: String,
    pub(crate) index: Option<Word>,
    pub(crate) op: Op,
}

#[derive(Debug, Clone)]
pub(crate) enum Op {
    Plain,
    Length,
    Keys,
    Indirect,
    /// `:-` and `-`; true with the colon.
    Default(Word, bool),
    Assign(Word, bool),
    Error(bool),
    Alt(Word, bool),
    /// `#` or `##`; true for the longest match.
    Prefix(Word, bool),
    Suffix(Word, bool),
    Replace {
        pattern: Word,
        with: Word,
        all: bool,
    },
    Substring(Word, Option<Word>),
    Case {
        upper: bool,
        all: bool,
    },
}

# SPDX-License-Identifier: GPL-2.0
"""The simple commands of a shell script, as much of sh and bash as ours are written in."""

import re

OPENING = {"if", "then", "elif", "else", "while", "until", "do", "!", "time", "{"}
CLOSING = {"fi", "done", "esac", "}"}
BREAKS = " \t\n;&|()<>"


class Reader:
    """One pass over a text. A part of a word that the shell puts in is a \\0 in it."""

    def __init__(self, text, found, function=None):
        self.text = text
        self.at = 0
        self.found = found
        self.function = function
        self.depth = 0
        self.left_at = None
        self.here = []

    def peek(self, length=1):
        return self.text[self.at : self.at + length]

    def skip_blank(self, newlines=False):
        """Past blanks, continued lines and comments."""
        while self.at < len(self.text):
            if self.peek(2) == "\\\n":
                self.at += 2
            elif self.peek() in " \t" or (newlines and self.peek() == "\n"):
                self.at += 1
            elif self.peek() == "#":
                self.at = (self.text + "\n").index("\n", self.at)
            else:
                break

    def here_documents(self):
        """Past what a line with << is followed by: data."""
        for end in self.here:
            match = re.compile(rf"^\t*{re.escape(end)}$", re.MULTILINE).search(self.text, self.at)
            self.at = match.end() + 1 if match else len(self.text)
        self.here = []

    def nested(self, close):
        """A script inside of a word, up to CLOSE."""
        self.script(close)
        self.at += 1

    def braces(self):
        """Past ${...}, of which only commands in it are of interest; returns its name."""
        start = self.at
        depth = 1
        while depth and self.at < len(self.text):
            if self.peek(2) == "$(":
                self.at += 2
                self.nested(")")
                continue
            if self.peek(2) in ("\\}", '\\"', "\\'"):
                self.at += 1
            elif self.peek(2) == "${":
                depth += 1
            elif self.peek() == "}":
                depth -= 1
            self.at += 1
        return self.text[start : self.at - 1]

    def expansion(self):
        """What a $ begins."""
        if self.peek(3) == "$((":
            self.at = self.text.index("))", self.at) + 2
        elif self.peek(2) == "$(":
            self.at += 2
            self.nested(")")
        elif self.peek(2) == "${":
            self.at += 2
            self.braces()
        else:
            name = re.compile(r"\$(\w+|[@*#?$!-])?").match(self.text, self.at).group()
            self.at += len(name)
            # "$@" is the command of who calls a function.
            return "\0@" if name == "$@" else "\0"
        return "\0"

    def double_quoted(self):
        word = ""
        self.at += 1
        while self.peek() not in ('"', ""):
            if self.peek() == "\\":
                word += self.text[self.at + 1]
                self.at += 2
            elif self.peek() == "$":
                word += self.expansion()
            else:
                word += self.peek()
                self.at += 1
        self.at += 1
        return word

    def word(self, breaks=BREAKS):
        """One word."""
        word = ""
        while self.at < len(self.text):
            char = self.peek()
            if self.peek(2) in ("<(", ">(") and not word:
                self.at += 2
                self.nested(")")
                return "\0"
            if char == "(" and word.endswith("=") and "(" in breaks:
                self.at += 1
                self.skip_blank(True)
                while self.peek() not in (")", ""):
                    self.word()
                    self.skip_blank(True)
                self.at += 1
                return word
            if char in breaks:
                break
            if char == "'":
                end = self.text.index("'", self.at + 1)
                word += self.text[self.at + 1 : end].replace("\0", "")
                self.at = end + 1
            elif char == '"':
                word += self.double_quoted()
            elif char == "\\":
                word += "" if self.peek(2) == "\\\n" else self.peek(2)[1:]
                self.at += 2
            elif char == "$":
                word += self.expansion()
            else:
                word += char
                self.at += 1
        return word

    def redirection(self):
        """Past < and > and where they go."""
        sign = re.compile(r"<<-|<<<|<<|>>|>\||[<>]&|[<>]").match(self.text, self.at).group()
        self.at += len(sign)
        self.skip_blank()
        where = self.word()
        if sign in ("<<", "<<-"):
            self.here.append(where)

    def case(self):
        """Past "case WORD in", and the commands of its arms."""
        self.skip_blank()
        self.word()
        self.skip_blank(True)
        self.at += len("in")
        while True:
            self.skip_blank(True)
            if re.compile(r"esac\b").match(self.text, self.at) or self.at >= len(self.text):
                self.at += len("esac")
                return
            while self.peek() not in (")", ""):
                if not self.word():
                    self.at += 1
            self.at += 1
            self.script(";;")
            if self.peek(2) == ";;":
                self.at += 2

    def define(self, name):
        """At the () of a function."""
        self.found.append((name, []))
        self.at = self.text.index(")", self.at) + 1
        self.skip_blank(True)
        if self.peek() == "{":
            self.function = name
            self.left_at = self.depth

    def keyword(self, word):
        """Whether WORD, where a command begins, is the shell's; takes in what belongs to it."""
        if word in ("{", "}"):
            self.depth += 1 if word == "{" else -1
            if word == "}" and self.function and self.depth == self.left_at:
                self.function = self.left_at = None
        elif word == "case":
            self.case()
        elif word in ("for", "select"):
            while self.peek() not in (";", "\n", ""):
                self.skip_blank()
                self.word(";\n \t")
        elif word == "[[":
            self.at = self.text.index(" ]]", self.at) + len(" ]]")
        else:
            return word in OPENING or word in CLOSING
        return True

    def flush(self, words):
        if words:
            self.found.append((self.function, words))
        return []

    def script(self, close=None):
        """Commands up to CLOSE, which is left there, or to the end."""
        words = []
        while self.at < len(self.text):
            self.skip_blank()
            char = self.peek()
            if close == ";;" and (
                self.peek(2) == ";;"
                or (not words and re.compile(r"esac\b").match(self.text, self.at))
            ):
                break
            if char == close:
                break
            if self.peek(2) == "((" and not words:
                self.at = self.text.index("))", self.at) + 2
            elif char in "<>" and self.peek(2) not in ("<(", ">("):
                self.redirection()
            elif char == "&" and self.peek(2) == "&>":
                self.at += 1
            elif char in "\n;&|":
                words = self.flush(words)
                self.at += 1
                if char == "\n":
                    self.here_documents()
            elif char == "(":
                if len(words) == 1 and re.compile(r"\(\s*\)").match(self.text, self.at):
                    self.define(words.pop())
                else:
                    self.at += 1
                    self.nested(")")
            elif char == ")":
                self.at += 1
            elif char:
                word = self.word()
                if not words and self.keyword(word):
                    continue
                # The number of what is redirected.
                if not (word.isdigit() and self.peek() in ("<", ">")):
                    words.append(word)
        self.flush(words)


def commands(text):
    """All simple commands: (the function they are in or None, their words; none where it begins)."""
    found = []
    Reader(text, found).script()
    return found

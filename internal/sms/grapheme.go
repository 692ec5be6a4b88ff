package sms

import (
	"cmp"
	"slices"
)

// class is the role of a code point in a grapheme: its Grapheme_Cluster_Break in Unicode 10.
type class uint8

const (
	other class = iota
	cr
	lf
	control
	extend
	regional // a regional indicator: two of them are a flag
	spacing
	prepend
	hangulL
	hangulV
	hangulT
	hangulLV
	hangulLVT
	emojiBase
	emojiModifier
	zwj
	glue      // joins an emoji after a zero width joiner
	emojiGlue // is both a base and glue
)

// The syllables of Hangul. Every 28th has no last consonant.
const (
	firstSyllable, lastSyllable = 0xac00, 0xd7a3
	syllablesPerVowel           = 28
)

// Between these, all code points are [other].
const softHyphen, firstMark = 0xad, 0x300

func classOf(r rune) class {
	switch {
	case r >= ' ' && r < 0x7f, r > softHyphen && r < firstMark:
		return other
	case r >= firstSyllable && r <= lastSyllable:
		if (r-firstSyllable)%syllablesPerVowel == 0 {
			return hangulLV
		}
		return hangulLVT
	}
	i, found := slices.BinarySearchFunc(classRanges[:], r, func(c classRange, r rune) int {
		if r <= c.last && r >= c.first {
			return 0
		}
		return cmp.Compare(c.first, r)
	})
	if !found {
		return other
	}
	return classRanges[i].class
}

// nextGrapheme returns the size of the first grapheme of a text that is not empty, in bytes and in units of UTF-16.
func nextGrapheme(text string) (size, units int) {
	var c cluster
	for i, r := range text {
		of := classOf(r)
		switch {
		case i == 0:
		case of == other && c.n == 1 && c.first == other, c.endsBefore(of):
			return i, units
		}
		c.add(of)
		if units++; r >= 0x10000 {
			units++
		}
	}
	return len(text), units
}

// cluster is the beginning of a grapheme, as far as the next code point depends on it.
type cluster struct {
	n              int   // code points
	first          class // of all
	last, previous class // previous is the one before last
	extended       bool  // one of them is extend
	onlyExtend     bool  // those after the first are all extend
	onlyRegional   bool  // those after the first are all regional
	regionals      bool  // one after the first is regional
	flag           bool  // the last regional one is not the first, and those between it and the first are all regional
	modified       bool  // the same with an emoji modifier, of which at least one extend is between it and the first
}

func (c *cluster) add(of class) {
	if c.n == 0 {
		*c = cluster{n: 1, first: of, last: of, extended: of == extend, onlyExtend: true, onlyRegional: true}
		return
	}
	switch of {
	case regional:
		c.flag, c.regionals = c.onlyRegional, true
	case emojiModifier:
		c.modified = c.n > 1 && c.onlyExtend
	}
	c.n++
	c.previous, c.last = c.last, of
	c.extended = c.extended || of == extend
	c.onlyExtend = c.onlyExtend && of == extend
	c.onlyRegional = c.onlyRegional && of == regional
}

// endsBefore reports whether the grapheme ends before a code point of a class. It follows the rules of UAX #29, version 10,
// in the order and with the exceptions of grapheme-splitter.
func (c *cluster) endsBefore(next class) bool {
	modified, flag := c.modified, c.flag
	switch next {
	case emojiModifier:
		modified = c.n > 1 && c.onlyExtend
	case regional:
		flag = c.onlyRegional
	}
	switch {
	case modified && c.first != extend && c.first != emojiBase && c.first != emojiGlue:
		return true
	case flag && c.last != prepend && c.last != regional:
		return true
	case c.last == cr && next == lf: // GB3
		return false
	case c.last == control, c.last == cr, c.last == lf, next == control, next == cr, next == lf: // GB4, GB5
		return true
	case joinsHangul(c.last, next), next == extend, next == zwj, next == spacing, c.last == prepend: // GB6 to GB9b
		return false
	case next == emojiModifier && c.modifiable(): // GB10
		return false
	case c.last == zwj && (next == glue || next == emojiGlue): // GB11
		return false
	}
	return c.regionals || c.last != regional || next != regional // GB12, GB13, GB999
}

// joinsHangul reports whether two letters or syllables of Hangul are parts of one syllable.
func joinsHangul(last, next class) bool {
	switch last {
	case hangulL:
		return next == hangulL || next == hangulV || next == hangulLV || next == hangulLVT
	case hangulV, hangulLV:
		return next == hangulV || next == hangulT
	case hangulT, hangulLVT:
		return next == hangulT
	}
	return false
}

// modifiable reports whether an emoji modifier continues the grapheme: directly behind a base, or behind one extend.
func (c *cluster) modifiable() bool {
	base := c.last
	if c.extended {
		if c.last != extend || c.n < 2 {
			return false
		}
		base = c.previous
	}
	return base == emojiBase || base == emojiGlue
}

// Package sms counts the segments of a text message: the parts that it is sent in, and that carriers and Twilio charge for.
//
// A text of which every character is in the GSM 03.38 alphabet is sent in septets: 160 of them fit in one segment. Any other
// text is sent as UCS-2, in units of UTF-16: 70 of them fit. A longer text is divided, and each of its segments begins with a
// header of six bytes, so that 153 septets or 67 units fit. A character of the extension table of GSM 03.38 takes two septets,
// and no segment ends between them. In UCS-2, no segment ends within a grapheme, such as an emoji of several code points, if it
// fits in one.
//
// The counts are equal to those of Twilio's calculator, the package sms-segments-calculator of npm. Therefore a grapheme is
// what its splitter grapheme-splitter takes for one: an extended grapheme cluster of Unicode 10, except for some rare
// sequences. TestMeasure_Table compares the two; testdata/README.md describes how the table was made.
package sms

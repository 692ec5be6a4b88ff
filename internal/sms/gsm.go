package sms

import "unicode/utf8"

// septetsASCII has the septets of each ASCII character; 0: it is not in the alphabet.
var septetsASCII = func() (of [utf8.RuneSelf]uint8) {
	for c := ' '; c < 0x7f; c++ {
		of[c] = 1
	}
	of['\n'], of['\r'], of['`'] = 1, 1, 0
	for _, c := range "\f[\\]^{|}~" {
		of[c] = 2
	}
	return of
}()

// septetsOf returns how many septets a character takes in the GSM 03.38 alphabet with its extension table; 0: it is in neither.
func septetsOf(r rune) int {
	if r < utf8.RuneSelf {
		return int(septetsASCII[r])
	}
	switch r {
	case '¡', '£', '¤', '¥', '§', '¿', 'Ä', 'Å', 'Æ', 'Ç', 'É', 'Ñ', 'Ö', 'Ø', 'Ü', 'ß', 'à', 'ä', 'å', 'æ', 'è', 'é', 'ì', 'ñ', 'ò', 'ö', 'ø', 'ù', 'ü',
		'Γ', 'Δ', 'Θ', 'Λ', 'Ξ', 'Π', 'Σ', 'Φ', 'Ψ', 'Ω':
		return 1
	case '€':
		return 2
	}
	return 0
}

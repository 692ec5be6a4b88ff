package invalid

// Distance is Levenshtein's: how many bytes must be put in, taken out or replaced to make b of a. It says which of the allowed
// names was probably meant.
func Distance(a, b string) int {
	row := make([]int, len(b)+1) // row[j] is the distance from the part of a read so far to b[:j]
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

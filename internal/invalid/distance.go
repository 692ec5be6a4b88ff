package invalid

// Distance returns the Levenshtein distance: the number of bytes to insert, delete or replace to turn a into b. It
// helps to suggest the allowed name that was probably meant.
func Distance(a, b string) int {
	row := make([]int, len(b)+1) // row[j] is the distance from the read prefix of a to b[:j]
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

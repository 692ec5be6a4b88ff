package store

// CutAt has chunks begin at these keys, in ascending order, and reach as far as the next one.
func (p *AuditPass) CutAt(keys []int64) {
	p.cuts, p.state.Walk.Step = keys, mostStep
}

package schedule

// CountInvalid counts submitted pushes that were refused for their form, before Submit or SubmitBatch was asked.
func (s *Service) CountInvalid(pushes int) {
	for range pushes {
		s.metrics.Submitted("invalid", "")
	}
}

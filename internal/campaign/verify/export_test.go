package verify

// Inner parts for tests.
var (
	SlotVerdict = slotVerdict
	SameJSON    = sameJSON
	MarksIn     = marksIn
	Most        = most
)

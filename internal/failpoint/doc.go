// Package failpoint names the points at which a process can be made to die or to freeze, and the gates that can be
// switched off. The points prove that the guarantees hold at any instruction. The gates prove that the proof would
// notice if they did not.
//
// All of it exists only in programs built with the tag "failpoint", which `make chaos` does. In any other program a
// point is nothing and every gate is on; nothing outside can change that.
//
// In a program built so, the environment says what happens:
//
//	FAILPOINT=kill@claim.committed:2   die by SIGKILL at the second claim.committed
//	FAILPOINT=stop@send.written:1      freeze by SIGSTOP there, until SIGCONT
//	FAILPOINT_OFF=judge                switch a gate off, or several: rearm,poll
package failpoint

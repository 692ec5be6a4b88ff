// Package failpoint names the points at which a process can be made to die or to freeze, which proves that the
// guarantees hold at any instruction.
//
// They exist only in programs built with the tag "failpoint", as `make chaos` builds them. In any other program a point
// is nothing, and the environment can not change that. In a program built with the tag, the environment plans one fault:
//
//	FAILPOINT=kill@claim.committed:2   die by SIGKILL at the second claim.committed
//	FAILPOINT=stop@send.written:1      freeze by SIGSTOP there, until SIGCONT
package failpoint

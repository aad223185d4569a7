//go:build linux

package main

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// process is a running target with the processes that it started: its group.
type process struct {
	command *exec.Cmd
	log     string
	ended   chan struct{}
}

// startTimeout bounds the time to a target's first answer. Others take long on a busy machine.
const startTimeout = 2 * time.Minute

func start(t *target, p variables) (*process, error) {
	var args []string
	for _, arg := range t.Command {
		args = append(args, p.expand(arg))
	}
	command := exec.Command(args[0], args[1:]...)
	command.Dir = p["DIR"]
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p["DIR"]}
	for name, value := range p {
		command.Env = append(command.Env, name+"="+value)
	}
	for name, value := range t.Env {
		command.Env = append(command.Env, name+"="+p.expand(value))
	}
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}

	s := &process{command: command, log: filepath.Join(p["DIR"], "output.log"), ended: make(chan struct{})}
	log, err := os.Create(s.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = command.Wait() // how it ended is no matter: it is killed in the end
		close(s.ended)
	}()
	return s, nil
}

// stop ends the process, and the processes that it started, if they have not ended.
func (s *process) stop() {
	_ = syscall.Kill(-s.command.Process.Pid, syscall.SIGKILL)
	<-s.ended
}

// await calls the target until it answers.
func (s *process) await(ctx context.Context, c *caller, x *exchange) error {
	for began := time.Now(); ; time.Sleep(2 * time.Millisecond) {
		var t tally
		if c.call(ctx, x, time.Now(), &t); t.failed == 0 {
			return nil
		}
		select {
		case <-s.ended:
			return fmt.Errorf("the target ended before it answered; %s", s.lastOutput())
		case <-ctx.Done():
			return ctx.Err()
		default:
		}
		if time.Since(began) > startTimeout {
			return fmt.Errorf("no answer within %v: %w; %s", startTimeout, t.failure, s.lastOutput())
		}
	}
}

func (s *process) lastOutput() string {
	log, err := os.ReadFile(s.log)
	if err != nil {
		return err.Error()
	}
	return "it said: " + string(log[max(0, len(log)-1000):])
}

// tick is the unit of the processor time in /proc: USER_HZ, which is 100 a
// second on every architecture of Linux.
const tick = 10 * time.Millisecond

// members are the processes of the group.
func (s *process) members() (group []procfs.Proc) {
	all, _ := procfs.AllProcs()
	for _, p := range all {
		if stat, err := p.Stat(); err == nil && stat.PGRP == s.command.Process.Pid { // else it has ended
			group = append(group, p)
		}
	}
	return group
}

// processor is the user and system time that the group has used.
func (s *process) processor() (sum time.Duration) {
	for _, p := range s.members() {
		sum += processorTime(p.PID)
	}
	return sum
}

// processorTime is the user and system time of a process, and of the children
// that it has waited for. For the process's own time there is a clock finer than
// /proc: clock_getcpuclockid(3).
func processorTime(pid int) time.Duration {
	const scheduler = 2 // CPUCLOCK_SCHED
	var own unix.Timespec
	err := unix.ClockGettime(int32(^pid<<3|scheduler), &own)
	p, failed := procfs.NewProc(pid)
	if err != nil || failed != nil {
		return 0 // it has ended
	}
	stat, _ := p.Stat()
	return time.Duration(own.Nano()) + time.Duration(stat.CUTime+stat.CSTime)*tick
}

// memory sums a figure of the group in MB.
func (s *process) memory(of func(procfs.ProcStatus) uint64) (sum float64) {
	for _, p := range s.members() {
		status, _ := p.NewStatus()
		sum += float64(of(status)) / 1e6
	}
	return sum
}

// Pages of files are left out: see server.
func resident(s procfs.ProcStatus) uint64 { return s.VmRSS - s.RssFile }
func highest(s procfs.ProcStatus) uint64  { return s.VmHWM - s.RssFile }

// written is how many bytes the group has written to disks. A file system in memory has
// none.
func (s *process) written() (sum int64) {
	for _, p := range s.members() {
		io, _ := p.IO()
		sum += int64(io.WriteBytes)
	}
	return sum
}

// sizeOf is the size of all files in a directory.
func sizeOf(dir string) (sum int64) {
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			if info, err := entry.Info(); err == nil { // else it was deleted meanwhile
				sum += info.Size()
			}
		}
		return nil
	})
	return sum
}

// The target is quiet when it uses less than one percent of a processor. One
// that never does gets quietTimeout.
const (
	quietFor     = 200 * time.Millisecond
	quietTimeout = 10 * time.Second
)

func (s *process) quiet() error {
	end := time.Now().Add(quietTimeout)
	for before := s.processor(); time.Now().Before(end); {
		time.Sleep(quietFor)
		now := s.processor()
		if now-before < quietFor/100 {
			return nil
		}
		before = now
	}
	return fmt.Errorf("the target is still busy %v after the load", quietTimeout)
}

// machineTime is the processor time that all processes have used.
func machineTime() time.Duration {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return 0
	}
	stat, _ := fs.Stat()
	used := stat.CPUTotal
	return time.Duration((used.User + used.Nice + used.System + used.IRQ + used.SoftIRQ) * float64(time.Second))
}

func freePorts() (one, other string, err error) {
	ports := make([]string, 2)
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", "", err
		}
		defer l.Close() // after both are chosen, so that they differ
		ports[i] = strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	}
	return ports[0], ports[1], nil
}

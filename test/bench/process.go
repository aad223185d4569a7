//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// process is a running target with the processes that it started: its group.
type process struct {
	command *exec.Cmd
	log     string
	ended   chan struct{}
}

// startTimeout bounds the time to a target's first answer.
const startTimeout = 30 * time.Second

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

// stop ends the process, and those that it started, if they have not ended.
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

// stat has the fields of /proc/PID/stat behind the name of the program, which
// may hold blanks: the first is field 3 of proc_pid_stat(5).
func stat(pid int) []string {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil // it has ended
	}
	return strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
}

// tick is the unit of the processor time in /proc: USER_HZ, which is 100 a
// second on every architecture of Linux.
const tick = 10 * time.Millisecond

func ticks(fields ...string) (sum time.Duration) {
	for _, field := range fields {
		n, _ := strconv.Atoi(field) // the kernel writes numbers
		sum += time.Duration(n) * tick
	}
	return sum
}

// members are the ids of the processes of the group.
func (s *process) members() (pids []int) {
	const pgrp = 2
	leader := strconv.Itoa(s.command.Process.Pid)
	directories, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range directories {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		if fields := stat(pid); fields != nil && fields[pgrp] == leader {
			pids = append(pids, pid)
		}
	}
	return pids
}

// processor is the user and system time that the group has used.
func (s *process) processor() (sum time.Duration) {
	for _, pid := range s.members() {
		sum += processorTime(pid)
	}
	return sum
}

// processorTime is the user and system time of a process, and of those children
// that it has waited for. For its own there is a clock which is finer than
// /proc: clock_getcpuclockid(3).
func processorTime(pid int) time.Duration {
	const scheduler = 2 // CPUCLOCK_SCHED
	var own unix.Timespec
	fields := stat(pid)
	if err := unix.ClockGettime(int32(^pid<<3|scheduler), &own); err != nil || fields == nil {
		return 0 // it has ended
	}
	return time.Duration(own.Nano()) + ticks(fields[13:15]...)
}

// memory sums a field of the group's /proc/PID/status, in MB: VmRSS is what is
// resident, RssFile what of that are pages of files, VmHWM the most that was ever resident.
func (s *process) memory(field string) float64 {
	var kB int
	for _, pid := range s.members() {
		raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		_, rest, _ := strings.Cut(string(raw), "\n"+field+":")
		if fields := strings.Fields(rest); len(fields) > 0 {
			n, _ := strconv.Atoi(fields[0])
			kB += n
		}
	}
	return float64(kB) * 1024 / 1e6
}

// written is how many bytes the group has written to disks. A file system in memory has
// none.
func (s *process) written() (sum int64) {
	for _, pid := range s.members() {
		raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
		_, rest, _ := strings.Cut(string(raw), "\nwrite_bytes: ")
		digits, _, _ := strings.Cut(rest, "\n")
		n, _ := strconv.ParseInt(digits, 10, 64)
		sum += n
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
	raw, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(raw), "\n")
	f := strings.Fields(line) // cpu user nice system idle iowait irq softirq
	if len(f) < 8 {
		return 0
	}
	return ticks(f[1], f[2], f[3], f[6], f[7])
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

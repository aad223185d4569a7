package llmapp

import (
	"context"
	"sync"
)

// jobs are what a configuration does besides answering requests.
type jobs struct {
	byName  map[string]func(context.Context) // not changed after the handlers are provisioned
	stop    context.CancelFunc               // nil before start
	running sync.WaitGroup
}

// AddJob lets the app run a job from Start to Stop, which ends the job's context and waits for it. Of
// jobs with one name, the app runs the first. Handlers call AddJob while they are provisioned.
func (a *App) AddJob(name string, run func(context.Context)) {
	if a.jobs.byName == nil {
		a.jobs.byName = make(map[string]func(context.Context))
	}
	if a.jobs.byName[name] == nil {
		a.jobs.byName[name] = run
	}
}

func (j *jobs) start() {
	ctx, cancel := context.WithCancel(context.Background())
	j.stop = cancel
	for _, run := range j.byName {
		j.running.Go(func() { run(ctx) })
	}
}

func (j *jobs) end() {
	if j.stop != nil {
		j.stop()
		j.running.Wait()
	}
}

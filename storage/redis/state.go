package redis

import (
	"context"
	"errors"

	"github.com/weirhq/weir/storage/control"
	"github.com/weirhq/weir/storage/credits"
	"github.com/weirhq/weir/storage/shared"
)

// State is one node's use of what the gateways of a store share.
type State struct {
	client   *client
	ledger   *Ledger
	memory   memory
	breakers *breakers
	affinity *affinity
	control  *controlLog
}

// Open opens what the gateways of a store share. It does not wait for Redis.
func Open(o Options) (*State, error) {
	c, err := newClient(o)
	if err != nil {
		return nil, err
	}
	ledger, err := newLedger(c)
	if err != nil {
		return nil, err
	}
	return &State{client: c, ledger: ledger, memory: memory{client: c, max: maxMemory}, breakers: newBreakers(c), affinity: newAffinity(c), control: newControlLog(c, ledger)}, nil
}

// Credits implements shared.State.
func (s *State) Credits() credits.Ledger { return s.ledger }

// Memory implements shared.State.
func (s *State) Memory() shared.Memory { return &s.memory }

// Breakers implements shared.State.
func (s *State) Breakers() shared.Breakers { return s.breakers }

// Affinity implements shared.State.
func (s *State) Affinity() shared.Affinity { return s.affinity }

// Runs implements shared.State.
func (s *State) Runs() shared.Runs { return &runs{s.client, s.ledger.wasAway} }

// Control implements shared.State.
func (s *State) Control() control.Log { return s.control }

// Close implements shared.State. Charges that Redis has not taken wait in the file.
func (s *State) Close(ctx context.Context) error {
	s.breakers.close()
	s.affinity.close()
	err := errors.Join(s.control.Close(ctx), s.ledger.Close(ctx))
	s.client.close()
	return err
}

// Interface guards
var _ shared.State = (*State)(nil)

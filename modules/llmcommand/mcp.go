package llmcommand

import (
	"errors"
	"io"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/weirhq/weir/modules/llmmcp"
)

func mcpCommand(cmd *cobra.Command) {
	addClientFlags(cmd)
	cmd.Args = cobra.NoArgs
	cmd.RunE = serveMCP
}

// serveMCP is an MCP server on standard input and output, as agents start them. Without an address, it asks
// the gateway of the user's latest login.
func serveMCP(cmd *cobra.Command, _ []string) error {
	c, err := clientOfUser(cmd)
	if err != nil {
		return err
	}
	in, ok := cmd.InOrStdin().(io.ReadCloser)
	if !ok {
		in = io.NopCloser(cmd.InOrStdin())
	}
	err = llmmcp.NewServer(c.ask).Run(cmd.Context(), &mcp.IOTransport{Reader: in, Writer: nopWriteCloser{cmd.OutOrStdout()}})
	if errors.Is(err, io.EOF) { // the agent has ended
		return nil
	}
	return err
}

type nopWriteCloser struct{ io.Writer }

func (nopWriteCloser) Close() error { return nil }

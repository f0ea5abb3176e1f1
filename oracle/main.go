// Command oracle answers, one JSON line for each JSON line it reads, what the Kubernetes code of one minor version does.
//
// A request names an operation in "op"; "id" comes back untouched. Unknown operations and malformed requests are
// answered with "error", never with silence, so that a caller can keep questions and answers in step.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

// An operation reads its own fields from the raw request and returns what is sent back as "answer".
type operation func(request json.RawMessage) (any, error)

var operations = map[string]operation{
	"allocate":       allocate,
	"allocate-bench": measureAllocate,
	"cel":            evaluate,
	"cel-bench":      measure,
	"cel-env":        declarations,
	"load-read":      readFile,
	"load-slices":    loadSlices,
	"ping":           func(json.RawMessage) (any, error) { return map[string]string{"kubernetes": minor}, nil },
}

type envelope struct {
	ID json.RawMessage `json:"id,omitempty"`
	Op string          `json:"op"`
}

type reply struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Answer any             `json:"answer,omitempty"`
	Error  string          `json:"error,omitempty"`
}

func main() {
	input := bufio.NewReaderSize(os.Stdin, 1<<20)
	output := bufio.NewWriterSize(os.Stdout, 1<<20)
	encoder := json.NewEncoder(output)
	encoder.SetEscapeHTML(false)
	for {
		line, err := input.ReadBytes('\n')
		if len(line) > 1 {
			if failed := encoder.Encode(answer(line)); failed != nil {
				fmt.Fprintln(os.Stderr, "oracle:", failed)
				os.Exit(1)
			}
			// A caller that waits for this answer before it asks again must get it now; one that has more
			// questions in the pipe is better served in blocks.
			if input.Buffered() == 0 {
				output.Flush()
			}
		}
		if err != nil {
			output.Flush()
			return
		}
	}
}

func answer(line []byte) (out reply) {
	var head envelope
	if err := json.Unmarshal(line, &head); err != nil {
		return reply{Error: err.Error()}
	}
	defer func() {
		if caught := recover(); caught != nil {
			out = reply{ID: head.ID, Error: fmt.Sprintf("panic: %v", caught)}
		}
	}()
	run, known := operations[head.Op]
	if !known {
		return reply{ID: head.ID, Error: fmt.Sprintf("unknown operation %q", head.Op)}
	}
	result, err := run(line)
	if err != nil {
		return reply{ID: head.ID, Error: err.Error()}
	}
	return reply{ID: head.ID, Answer: result}
}

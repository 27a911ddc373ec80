/** A terminal in a container: a ticket, then a WebSocket. */
import { useState } from 'preact/hooks';

import { call } from '../../api/client.ts';
import { Button } from '../../kit/button.tsx';
import { TerminalBox } from '../../kit/display/terminal.tsx';
import { t } from '../../words/t.ts';

/** The terminal with the command that it runs. It begins when the user wants it: the password may be asked for. */
export function Shell({ path, name }: { readonly path: string; readonly name: string }) {
    const [command, setCommand] = useState('/bin/sh');
    const [run, setRun] = useState(0);
    const words = command.trim().split(/\s+/).filter(Boolean);
    return (
        <section class="card">
            <form
                onSubmit={(event) => {
                    event.preventDefault();
                    setRun(run + 1);
                }}
            >
                <div class="row ends">
                    <label class="filter">
                        <span>{t('Command')}</span>
                        <input
                            type="text"
                            value={command}
                            spellcheck={false}
                            onInput={(event) => setCommand(event.currentTarget.value)}
                        />
                    </label>
                    <Button type="submit" look="primary" isDisabled={words.length === 0}>
                        {run === 0 ? t('Open a terminal') : t('Open again')}
                    </Button>
                </div>
            </form>
            {run === 0 ? null : (
                <TerminalBox
                    key={run}
                    label={t('Terminal in {name}', { name })}
                    open={async (size) =>
                        (
                            await call<{ path: string }>('POST', `${path}/sessions`, {
                                body: { command: words, ...size }
                            })
                        ).data.path
                    }
                />
            )}
        </section>
    );
}

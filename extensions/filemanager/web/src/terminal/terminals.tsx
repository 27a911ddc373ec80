/** Terminals that are open, of all users. */
import { List } from '../kit/list.tsx';
import { panel } from '../panel.ts';
import { bytes, t, time } from '../words.ts';

/** Shows the list of open terminals. */
export function Terminals() {
    return (
        <List read={() => panel.call('filemanager.terminals')} empty={t('No terminal is open.')}>
            {({ id, username, startedAt, bytes: shown, recording }, change) => (
                <>
                    <span>
                        <strong>{username}</strong>{' '}
                        <span class="dim">
                            {t('since {time}', { time: time(startedAt) })} · {bytes(shown)}
                            {recording === null ? '' : ` · ${t('recorded')}`}
                        </span>
                    </span>
                    <button
                        type="button"
                        class="danger"
                        aria-label={t('End the terminal of {username}', { username })}
                        onClick={() => change(() => panel.call('filemanager.endTerminal', { path: { id } }))}
                    >
                        {t('End')}
                    </button>
                </>
            )}
        </List>
    );
}

/** The console of a database: its tables, an editor, what a statement answers, and what the user ran before. */
import { useState } from 'preact/hooks';

import { call } from '../../api/client.ts';
import { ApiFailure } from '../../api/failure.ts';
import { invalidate, useMay, useRead } from '../../api/queries.ts';
import { randomId } from '../../browser/ids.ts';
import { Button } from '../../kit/button.tsx';
import { CodeBox } from '../../kit/forms/code.tsx';
import { quantity, relativeTime } from '../../words/format.ts';
import { t } from '../../words/t.ts';
import { base, type Ran, type Result, selectFrom, type Server, type Table } from './database-view.ts';
import { ResultView } from './result.tsx';

/** What came of the last statement. */
type Outcome = Result | { readonly plan: string } | ApiFailure;

const mostRows = 500;
const shownHistory = 20;

/** The console. @param path - of the server in the API */
export function Console({
    server,
    path,
    database
}: {
    readonly server: Server;
    readonly path: string;
    readonly database: string;
}) {
    const may = useMay();
    const [sql, setSql] = useState('');
    /** Counts the statements that did not come from the editor. */
    const [chosen, setChosen] = useState(0);
    const [isWrite, setWrite] = useState(false);
    const { outcome, running, ask } = useStatement(path);
    const run = (text: string): void =>
        void ask('query', { database, sql: text, write: isWrite, maxRows: mostRows });
    const choose = (text: string): void => {
        setSql(text);
        setChosen(chosen + 1);
    };
    const show = (table: Table): void => {
        const text = selectFrom(server, table);
        choose(text);
        run(text);
    };
    return (
        <div class="query">
            <Tables path={`${path}/databases/${encodeURIComponent(database)}/tables`} onShow={show} />
            <div class="fill">
                <CodeBox
                    label={t('Statement')}
                    media="application/sql"
                    key={chosen}
                    initial={sql}
                    onChange={setSql}
                    onRun={() => run(sql)}
                />
                <div class="row spread">
                    <div class="row">
                        <Button
                            look="primary"
                            isDisabled={running !== null || sql.trim() === ''}
                            onPress={() => run(sql)}
                        >
                            {t('Run')}
                        </Button>
                        <Button
                            isDisabled={running !== null || sql.trim() === ''}
                            onPress={() => ask('explain', { database, sql })}
                        >
                            {t('Explain')}
                        </Button>
                        {running === null ? null : (
                            <Button onPress={() => call('DELETE', `${path}/query/${running}`)}>
                                {t('Cancel')}
                            </Button>
                        )}
                    </div>
                    {may('database:write') ? (
                        <label class="row">
                            <input
                                type="checkbox"
                                checked={isWrite}
                                onChange={(event) => setWrite(event.currentTarget.checked)}
                            />
                            {t('May change things')}
                        </label>
                    ) : null}
                </div>
                <div role="status">{outcome === null ? null : <OutcomeView outcome={outcome} />}</div>
                <History server={server} onChoose={choose} />
            </div>
        </div>
    );
}

/** Runs statements of one server, one at a time. */
function useStatement(path: string) {
    const [outcome, setOutcome] = useState<Outcome | null>(null);
    /** Name of the statement that runs. */
    const [running, setRunning] = useState<string | null>(null);
    const ask = async (route: 'query' | 'explain', body: object): Promise<void> => {
        const queryId = randomId();
        setRunning(queryId);
        try {
            if (route === 'query') {
                setOutcome(
                    (await call<Result>('POST', `${path}/query`, { body: { ...body, queryId } })).data
                );
            } else {
                setOutcome({
                    plan: (await call<{ text: string }>('POST', `${path}/explain`, { body })).data.text
                });
            }
        } catch (error) {
            if (!(error instanceof ApiFailure)) {
                throw error;
            }
            setOutcome(error);
        } finally {
            setRunning(null);
            await invalidate(base);
        }
    };
    return { outcome, running, ask };
}

function OutcomeView({ outcome }: { readonly outcome: Outcome }) {
    if (outcome instanceof ApiFailure) {
        return (
            <p class="failure" role="alert">
                {Object.values(outcome.fields)[0] ?? outcome.message}
            </p>
        );
    }
    return 'plan' in outcome ? <pre>{outcome.plan}</pre> : <ResultView result={outcome} />;
}

function Tables({ path, onShow }: { readonly path: string; readonly onShow: (table: Table) => void }) {
    const { data = [] } = useRead<readonly Table[]>(`${path}?limit=200`);
    return (
        <nav aria-label={t('Tables')}>
            <h2>{t('Tables')}</h2>
            {data.length === 0 ? <p class="dim">{t('No table yet')}</p> : null}
            <ul class="bare">
                {data.map((table) => (
                    <li key={`${table.schema}.${table.name}`}>
                        <Button look="quiet" onPress={() => onShow(table)}>
                            {table.name}
                        </Button>
                        {table.rows === null ? null : (
                            <small class="dim number">{quantity(table.rows, undefined)}</small>
                        )}
                    </li>
                ))}
            </ul>
        </nav>
    );
}

function History({
    server,
    onChoose
}: {
    readonly server: Server;
    readonly onChoose: (sql: string) => void;
}) {
    const { data = [] } = useRead<readonly Ran[]>(
        `${base}/history?serverId=${server.id}&limit=${shownHistory}`
    );
    return data.length === 0 ? null : (
        <details>
            <summary>{t('Your own statements')}</summary>
            <ul class="bare lined">
                {data.map(({ id, sql, at, failure }) => (
                    <li key={id}>
                        <Button look="quiet" onPress={() => onChoose(sql)}>
                            <code>{sql.length > 200 ? `${sql.slice(0, 200)}…` : sql}</code>
                        </Button>
                        <span class="dim">
                            {relativeTime(at)} {failure ?? ''}
                        </span>
                    </li>
                ))}
            </ul>
        </details>
    );
}

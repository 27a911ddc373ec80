/** A write that comes too late: the thing was changed meanwhile. The user sees what differs, and chooses. */
import { call } from '../../api/client.ts';
import { ApiFailure } from '../../api/failure.ts';
import { t } from '../../words/t.ts';
import { Button } from '../button.tsx';
import { Differences } from '../display/difference.tsx';
import { Store, useStore } from '../store.ts';
import { Dialog } from './dialog.tsx';

type Values = Readonly<Record<string, unknown>>;

interface Conflict {
    readonly theirs: Values;
    readonly mine: Values;
    readonly titles: Readonly<Record<string, string>>;
    readonly choose: (choice: 'mine' | 'theirs') => void;
}

const conflict = new Store<Conflict | null>(null);

/** What is written, and how. */
export interface Write {
    /** Where the thing as it is now can be read. */
    readonly path: string;
    readonly body: Values;
    readonly version: number | undefined;
    readonly titles?: Readonly<Record<string, string>>;
    readonly save: (version: number | undefined) => Promise<unknown>;
}

/** Writes; when the thing was changed meanwhile, asks whose state counts. Resolves with false when the user takes the other one. @throws ApiFailure */
export async function writeOrAsk({ path, body, version, titles = {}, save }: Write): Promise<boolean> {
    try {
        await save(version);
        return true;
    } catch (error) {
        if (!(error instanceof ApiFailure) || error.reason !== 'VERSION_STALE') {
            throw error;
        }
    }
    const { data } = await call<Values>('GET', path);
    const choice = await new Promise<'mine' | 'theirs'>((resolve) => {
        conflict.set({ theirs: data, mine: body, titles, choose: resolve });
    });
    conflict.set(null);
    if (choice === 'mine') {
        await save(Number(data['version']));
    }
    return choice === 'mine';
}

/** The place where the question is shown. */
export function Conflicts() {
    const asked = useStore(conflict);
    if (asked === null) {
        return null;
    }
    const { theirs, mine, titles, choose } = asked;
    return (
        <Dialog title={t('It was changed meanwhile')} onClose={() => choose('theirs')} isWide>
            <p>{t('Another user saved before you. This is what is there now, and what you would write:')}</p>
            <Differences
                before={Object.fromEntries(Object.keys(mine).map((key) => [key, theirs[key]]))}
                after={mine}
                titles={titles}
            />
            <footer>
                <Button onPress={() => choose('theirs')}>{t('Take theirs')}</Button>
                <Button look="primary" onPress={() => choose('mine')}>
                    {t('Write mine')}
                </Button>
            </footer>
        </Dialog>
    );
}

/** What can be done in a folder. */
import { startJob } from '../kit/jobs.tsx';
import { type Asker, askText } from '../kit/question.tsx';
import type { Go } from '../location.ts';
import { type At, join, may, nameOf, panel, resultOf, tell } from '../panel.ts';
import { t } from '../words.ts';

interface ToolsProps extends At {
    readonly go: Go;
    readonly load: () => Promise<void>;
    readonly ask: Asker;
    readonly upload: (files: FileList | null) => void;
    readonly canWrite: boolean;
}

/** The buttons above a folder. */
export function Tools({ root, path, go, load, ask, upload, canWrite }: ToolsProps) {
    return (
        <div class="row">
            {canWrite ? (
                <>
                    <MakingTools root={root} path={path} go={go} load={load} ask={ask} />
                    <label class="button upload">
                        {t('Upload')}
                        <input
                            type="file"
                            multiple
                            onChange={(event) => {
                                upload(event.currentTarget.files);
                                event.currentTarget.value = '';
                            }}
                        />
                    </label>
                </>
            ) : null}
            {may('content') ? (
                <button
                    type="button"
                    onClick={() =>
                        void tell(() =>
                            panel.download('filemanager.downloadFolder', {
                                query: { root, path, format: 'zip' }
                            })
                        )
                    }
                >
                    {t('Download as zip')}
                </button>
            ) : null}
            <button type="button" onClick={() => go({ view: 'details', root, path })}>
                {t('Details')}
            </button>
            {may('terminal') ? (
                <button type="button" onClick={() => go({ view: 'terminal', root, path })}>
                    {t('Terminal')}
                </button>
            ) : null}
        </div>
    );
}

function MakingTools({ root, path, go, load, ask }: Omit<ToolsProps, 'upload' | 'canWrite'>) {
    const makeFolder = async (name: string): Promise<boolean> =>
        tell(async () => {
            await panel.call('filemanager.makeFolder', { body: { root, path: join(path, name) } });
            await load();
        });
    const makeFile = async (name: string): Promise<boolean> => {
        const query = { root, path: join(path, name) };
        const isMade = await tell(() =>
            panel.upload('filemanager.write', new Blob(['']), { query, onlyNew: true })
        );
        if (isMade) {
            go({ view: 'file', ...query });
        }
        return isMade;
    };
    return (
        <>
            <button
                type="button"
                onClick={() => ask(askText(t('Name of the new folder'), t('Create'), '', makeFolder))}
            >
                {t('New folder')}
            </button>
            <button
                type="button"
                onClick={() => ask(askText(t('Name of the new file'), t('Create'), '', makeFile))}
            >
                {t('New file')}
            </button>
            <button type="button" onClick={() => askAddress({ root, path }, ask, load)}>
                {t('From an address')}
            </button>
        </>
    );
}

/** Asks for an address, and has the panel download it. */
function askAddress({ root, path }: At, ask: Asker, load: () => Promise<void>): void {
    ask({
        title: t('Download from an address'),
        action: t('Download'),
        fields: {
            url: { label: t('Address'), value: 'https://', type: 'url' },
            name: {
                label: t('Name of the file; empty: the last part of the address'),
                value: '',
                isOptional: true
            },
            sha256: { label: t('SHA-256 that it must have, if you know it'), value: '', isOptional: true }
        },
        onSend: ({ url = '', name = '', sha256 = '' }) =>
            tell(async () => {
                const file = name === '' ? nameOf(URL.parse(url)?.pathname ?? '') : name;
                const body = {
                    url,
                    root,
                    path: join(path, file === '' ? 'download' : file),
                    ...(sha256 === '' ? {} : { sha256 })
                };
                const answer = await panel.call('filemanager.fetch', { body });
                startJob(
                    body.path,
                    ({ signal, onProgress }) =>
                        resultOf(answer, { signal, onProgress: (part) => onProgress(part, 1) }),
                    () => void load()
                );
            })
    });
}

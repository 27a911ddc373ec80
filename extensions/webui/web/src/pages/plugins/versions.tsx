/** The versions that are kept here, and the way back to one. */
import { Button } from '../../kit/button.tsx';
import { Table } from '../../kit/display/table.tsx';
import { Badge, Value } from '../../kit/display/value.tsx';
import { t } from '../../words/t.ts';
import type { Wanted } from './change-dialog.tsx';
import type { PluginDetail } from './plugin-view.ts';

/** Shows the versions of a plugin, and lets the user choose one. */
export function Versions({
    plugin: { name, versions },
    onChoose
}: {
    readonly plugin: PluginDetail;
    readonly onChoose: (wanted: Wanted) => void;
}) {
    return (
        <Table
            caption={t('Versions')}
            rows={versions}
            keyOf={({ version }) => version}
            empty={t('It came with the panel or from a folder, so no other version of it is kept here.')}
            columns={[
                { key: 'version', title: t('Version'), cell: (row) => row.version },
                {
                    key: 'at',
                    title: t('Installed'),
                    cell: (row) => <Value value={row.installedAt} schema={{ format: 'date-time' }} />
                },
                { key: 'signature', title: t('Signature'), cell: (row) => row.signature },
                {
                    key: 'current',
                    title: t('State'),
                    cell: (row) => (row.current ? <Badge text="in use" tone="good" /> : <Badge text="kept" />)
                }
            ]}
            actions={(row) =>
                row.current ? null : (
                    <Button
                        onPress={() =>
                            onChoose({ kind: 'version', name, version: row.version, isBack: true })
                        }
                    >
                        {t('Go back to it …')}
                    </Button>
                )
            }
        />
    );
}

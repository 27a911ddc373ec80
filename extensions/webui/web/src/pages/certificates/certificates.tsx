/** All certificates: what each covers, and when it ends. */
import { useState } from 'preact/hooks';
import { Link } from 'wouter-preact';

import { useMay, useRead } from '../../api/queries.ts';
import { Button } from '../../kit/button.tsx';
import { Table } from '../../kit/display/table.tsx';
import { Badge, Value } from '../../kit/display/value.tsx';
import { Icon } from '../../kit/icon.tsx';
import { Page, Waiting } from '../../kit/page.tsx';
import { t } from '../../words/t.ts';
import { type CertificateView, lifeOf } from './certificate-view.ts';
import { NewCertificate } from './new-certificate.tsx';

/** Shows the screen *Certificates*: all of them, and when they end. */
export default function Certificates() {
    const { data, error } = useRead<readonly CertificateView[]>('/api/certificates');
    const may = useMay();
    const [isOpen, setOpen] = useState(false);
    const start = may('certificates:write') ? (
        <Button look="primary" onPress={() => setOpen(true)}>
            <Icon name="plus" />
            {t('New certificate')}
        </Button>
    ) : null;
    return (
        <Page
            title={t('Certificates')}
            lead={t('Hosts with HTTPS get theirs by themselves. Here are those, and your own.')}
            actions={start}
        >
            {data === undefined ? (
                <Waiting error={error} />
            ) : (
                <Table
                    caption={t('Certificates')}
                    rows={data}
                    icon="shield"
                    empty={t('No certificate yet')}
                    firstStep={start}
                    keyOf={({ id }) => String(id)}
                    columns={[
                        {
                            key: 'name',
                            title: t('Name'),
                            cell: (row) => <Link href={`/certificates/${row.id}`}>{row.name}</Link>
                        },
                        { key: 'state', title: t('State'), cell: (row) => <Life certificate={row} /> },
                        {
                            key: 'ends',
                            title: t('Ends'),
                            cell: (row) => <Value value={row.notAfter} schema={{ format: 'date-time' }} />
                        },
                        { key: 'covers', title: t('Covers'), cell: (row) => <Names names={row.domains} /> },
                        { key: 'source', title: t('From'), cell: (row) => t(sources[row.source]) },
                        {
                            key: 'used',
                            title: t('Hosts'),
                            cell: (row) => <span class="number">{row.usedBy.length}</span>
                        }
                    ]}
                />
            )}
            {isOpen ? <NewCertificate onClose={() => setOpen(false)} /> : null}
        </Page>
    );
}

const sources: Readonly<Record<CertificateView['source'], string>> = {
    upload: 'uploaded',
    acme: 'ordered',
    engine: 'the engine'
};

/** Its state in a word. */
export function Life({ certificate }: { readonly certificate: CertificateView }) {
    const { text, tone } = lifeOf(certificate);
    return <Badge text={text} tone={tone} />;
}

function Names({ names }: { readonly names: readonly string[] }) {
    return (
        <span title={names.join(', ')}>
            {names.slice(0, 2).join(', ')}
            {names.length > 2 ? ` +${names.length - 2}` : ''}
        </span>
    );
}

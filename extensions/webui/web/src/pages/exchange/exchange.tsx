/** The panel's state as one document: out, and in after a look at the plan. */
import { useMay } from '../../api/queries.ts';
import { Page } from '../../kit/page.tsx';
import { t } from '../../words/t.ts';
import { Export } from './export.tsx';
import { Import } from './import.tsx';

/** Shows the screen *Import and export*. */
export default function Exchange() {
    const may = useMay();
    return (
        <Page
            title={t('Import and export')}
            lead={t('One document holds what the panel knows. Another panel can take it in.')}
        >
            {may('export:run') ? <Export /> : null}
            {may('import:run') ? <Import /> : null}
        </Page>
    );
}

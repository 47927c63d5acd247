/* The header alone, as strictly as compilers go. */
#include <gasnet_tools.h>

int main(void) { return 0; }

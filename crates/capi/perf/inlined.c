/* What the test capi/inlined disassembles: each function is one call of the interface, as a program makes it. To a rank whose
   segment is mapped, and with an event that has come to pass, it is to go to its end without a call. */
#include <gasnetex.h>

int put8(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *source);
int get8(gex_TM_t tm, void *dest, gex_Rank_t rank, void *source);
int put8_value(gex_TM_t tm, gex_Rank_t rank, void *dest, gex_RMA_Value_t value);
int put4_value(gex_TM_t tm, gex_Rank_t rank, void *dest, gex_RMA_Value_t value);
gex_RMA_Value_t get8_value(gex_TM_t tm, gex_Rank_t rank, void *source);
gex_RMA_Value_t get1_value(gex_TM_t tm, gex_Rank_t rank, void *source);
gex_Event_t put8_event(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *source);
gex_Event_t put8_leaf(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *source, gex_Event_t *leaf);
gex_Event_t put8_value_event(gex_TM_t tm, gex_Rank_t rank, void *dest, gex_RMA_Value_t value);
gex_Event_t get8_event(gex_TM_t tm, void *dest, gex_Rank_t rank, void *source);
int put8_implicit(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *source);
int put8_value_implicit(gex_TM_t tm, gex_Rank_t rank, void *dest, gex_RMA_Value_t value);
int get8_implicit(gex_TM_t tm, void *dest, gex_Rank_t rank, void *source);
int put64(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *source);
int64_t fetch_add8(gex_AD_t ad, gex_Rank_t rank, void *target, int64_t by);
int64_t fetch_add8_by_job(gex_AD_t ad, gex_Rank_t rank, void *target, int64_t by);
int increment8(gex_AD_t ad, gex_Rank_t rank, void *target);
int set4(gex_AD_t ad, gex_Rank_t rank, void *target, uint32_t value);
uint32_t load4(gex_AD_t ad, gex_Rank_t rank, void *target);
uint64_t compare_swap8(gex_AD_t ad, gex_Rank_t rank, void *target, uint64_t current, uint64_t next);
int test(gex_Event_t event);
void wait_for(gex_Event_t event);

int put8(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *source) {
  return gex_RMA_PutBlocking(tm, rank, dest, source, 8, 0);
}
int get8(gex_TM_t tm, void *dest, gex_Rank_t rank, void *source) {
  return gex_RMA_GetBlocking(tm, dest, rank, source, 8, 0);
}
int put8_value(gex_TM_t tm, gex_Rank_t rank, void *dest, gex_RMA_Value_t value) {
  return gex_RMA_PutBlockingVal(tm, rank, dest, value, 8, 0);
}
int put4_value(gex_TM_t tm, gex_Rank_t rank, void *dest, gex_RMA_Value_t value) {
  return gex_RMA_PutBlockingVal(tm, rank, dest, value, 4, 0);
}
gex_RMA_Value_t get8_value(gex_TM_t tm, gex_Rank_t rank, void *source) {
  return gex_RMA_GetBlockingVal(tm, rank, source, 8, 0);
}
gex_RMA_Value_t get1_value(gex_TM_t tm, gex_Rank_t rank, void *source) {
  return gex_RMA_GetBlockingVal(tm, rank, source, 1, 0);
}
gex_Event_t put8_event(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *source) {
  return gex_RMA_PutNB(tm, rank, dest, source, 8, GEX_EVENT_NOW, 0);
}
gex_Event_t put8_leaf(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *source, gex_Event_t *leaf) {
  return gex_RMA_PutNB(tm, rank, dest, source, 8, leaf, 0);
}
gex_Event_t put8_value_event(gex_TM_t tm, gex_Rank_t rank, void *dest, gex_RMA_Value_t value) {
  return gex_RMA_PutNBVal(tm, rank, dest, value, 8, 0);
}
gex_Event_t get8_event(gex_TM_t tm, void *dest, gex_Rank_t rank, void *source) {
  return gex_RMA_GetNB(tm, dest, rank, source, 8, 0);
}
int put8_implicit(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *source) {
  return gex_RMA_PutNBI(tm, rank, dest, source, 8, GEX_EVENT_NOW, 0);
}
int put8_value_implicit(gex_TM_t tm, gex_Rank_t rank, void *dest, gex_RMA_Value_t value) {
  return gex_RMA_PutNBIVal(tm, rank, dest, value, 8, 0);
}
int get8_implicit(gex_TM_t tm, void *dest, gex_Rank_t rank, void *source) {
  return gex_RMA_GetNBI(tm, dest, rank, source, 8, 0);
}
int put64(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *source) {
  return gex_RMA_PutBlocking(tm, rank, dest, source, 64, 0);
}
int64_t fetch_add8(gex_AD_t ad, gex_Rank_t rank, void *target, int64_t by) {
  int64_t was = 0;
  (void)gex_AD_OpNBI_I64(ad, &was, rank, target, GEX_OP_FADD, by, 0, 0);
  return was;
}
int64_t fetch_add8_by_job(gex_AD_t ad, gex_Rank_t rank, void *target, int64_t by) {
  int64_t was = 0;
  (void)gex_AD_OpNBI_I64(ad, &was, rank, target, GEX_OP_FADD, by, 0,
                         GEX_FLAG_RANK_IS_JOBRANK | GEX_FLAG_AD_ACQ | GEX_FLAG_AD_REL);
  return was;
}
int increment8(gex_AD_t ad, gex_Rank_t rank, void *target) {
  return gex_AD_OpNBI_I64(ad, NULL, rank, target, GEX_OP_INC, 0, 0, GEX_FLAG_AD_REL);
}
int set4(gex_AD_t ad, gex_Rank_t rank, void *target, uint32_t value) {
  return gex_AD_OpNBI_U32(ad, NULL, rank, target, GEX_OP_SET, value, 0, 0);
}
uint32_t load4(gex_AD_t ad, gex_Rank_t rank, void *target) {
  uint32_t was = 0;
  (void)gex_AD_OpNBI_U32(ad, &was, rank, target, GEX_OP_GET, 0, 0, 0);
  return was;
}
uint64_t compare_swap8(gex_AD_t ad, gex_Rank_t rank, void *target, uint64_t current, uint64_t next) {
  uint64_t was = 0;
  (void)gex_AD_OpNBI_U64(ad, &was, rank, target, GEX_OP_FCAS, current, next, 0);
  return was;
}
int test(gex_Event_t event) { return gex_Event_Test(event); }
void wait_for(gex_Event_t event) { gex_Event_Wait(event); }
